// OUT/running/N.program: the program that worker N is running, there before it runs, so that whatever kills
// the tool, the machine included, leaves it on disk. Without fsync, which would cost more than a program: a
// loss of power within seconds may lose it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "properties/program.h"

namespace gatherfuzz {

// One file, made when it is first needed. When this goes, the file goes, and with the last one its folder.
class RunningFile {
 public:
  explicit RunningFile(std::string path) : path_(std::move(path)) {}
  ~RunningFile();
  RunningFile(const RunningFile&) = delete;
  RunningFile& operator=(const RunningFile&) = delete;

  // The printed program of this number takes the place of the one before: one system call. Throws
  // InternalError if there can be no such file; on a full disk it is left empty.
  void record(uint64_t number, std::string_view program);

 private:
  void open();

  std::string path_;
  int file_ = -1;
  std::size_t length_ = 0;  // of the longest program so far: shorter ones are filled up with empty lines
};

// A program that a campaign was running when it was killed.
struct LeftProgram {
  std::string file;
  uint64_t number = 0;             // in the campaign
  std::optional<Program> program;  // nothing where the kill left only a part of it
};

// The programs of OUT/running, by file name.
std::vector<LeftProgram> left_programs(const std::string& out);

}  // namespace gatherfuzz
