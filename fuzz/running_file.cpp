#include "fuzz/running_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <filesystem>

#include "fuzz/exit_code.h"
#include "fuzz/files.h"
#include "impl/training/flag_text.h"

namespace gatherfuzz {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kNumber = "# program ";  // the second line
constexpr std::size_t kMostBytes = 2 * kMaxProgramBytes;

// "NUMBER", and the program without that line.
void read_left(std::string text, LeftProgram& left) {
  const std::size_t begin = text.find('\n') + 1;
  const std::size_t end = text.find('\n', begin);
  if (begin == 0 || end == std::string::npos || text.compare(begin, kNumber.size(), kNumber) != 0) return;
  const std::size_t digits = begin + kNumber.size();
  const std::optional<uint64_t> number = parse_whole(std::string_view(text).substr(digits, end - digits));
  if (!number) return;
  left.number = *number;
  text.erase(begin, end + 1 - begin);
  text.erase(text.find_last_not_of('\n') + 1);
  left.program = parse_program(text + "\n").program;
}

}  // namespace

RunningFile::~RunningFile() {
  if (file_ < 0) return;
  close(file_);
  std::error_code ignored;
  fs::remove(path_, ignored);
  fs::remove(fs::path(path_).parent_path(), ignored);  // which fails while others are there
}

void RunningFile::open() {
  std::error_code error;
  fs::create_directories(fs::path(path_).parent_path(), error);
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file_ < 0) throw InternalError("cannot write " + path_ + ": " + strerror(errno));
}

void RunningFile::record(uint64_t number, std::string_view program) {
  if (file_ < 0) open();
  const std::size_t first_line = program.find('\n') + 1;
  std::string text(program.substr(0, first_line));
  text.append(kNumber).append(std::to_string(number)).append("\n").append(program.substr(first_line));
  if (text.size() < length_) text.resize(length_, '\n');
  length_ = text.size();
  ssize_t written = 0;
  do {
    written = pwrite(file_, text.data(), text.size(), 0);
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(text.size())) return;
  length_ = 0;
  if (ftruncate(file_, 0) != 0) throw InternalError("cannot write " + path_ + ": " + strerror(errno));
}

std::vector<LeftProgram> left_programs(const std::string& out) {
  std::vector<LeftProgram> found;
  std::string problem;
  if (!is_folder(out + "/running")) return found;
  for (const std::string& file : programs_below(out + "/running", problem)) {
    LeftProgram& left = found.emplace_back();
    left.file = file;
    if (const std::optional<std::string> text = read_file(file, kMostBytes, problem)) read_left(*text, left);
  }
  return found;
}

}  // namespace gatherfuzz
