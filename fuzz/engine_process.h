// One process of a fuzz target with its engine, libFuzzer, that reports the programs which it runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/child_process.h"
#include "fuzz/running_file.h"
#include "properties/run.h"

namespace gatherfuzz {

struct EngineCommand {
  std::string binary;
  std::vector<std::string> arguments;                            // without -seed
  std::vector<std::pair<std::string, std::string>> environment;  // an empty value: not set
  uint64_t seed = 0;
  std::string log;      // a file for what it says
  std::string running;  // a file that always holds what it runs
};

class EngineProcess {
 public:
  explicit EngineProcess(EngineCommand command)
      : command_(std::move(command)), running_file_(command_.running) {}

  // Starts the process if there is none: at first, and after its death, with another seed. Throws
  // InternalError.
  void start();
  // Readable once read() has something to do.
  int socket() const { return process_.socket(); }

  struct Finished {
    Program program;
    Outcome outcome;
    bool died = false;  // the process did, while it ran the program
  };
  // Reads a message; returns the program that ended with it. One that begins will be of about this number.
  // Throws InternalError if the process died several
  // times without having run a program, and UsageError if it is of another build.
  std::optional<Finished> read(uint64_t number);

 private:
  std::optional<Finished> died();
  [[noreturn]] void become_engine(int socket) const;
  std::string last_words() const;

  EngineCommand command_;
  ChildProcess process_;
  RunningFile running_file_;
  uint64_t starts_ = 0;
  std::optional<Program> running_;
  int idle_deaths_ = 0;  // since the last outcome
};

}  // namespace gatherfuzz
