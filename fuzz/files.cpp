#include "fuzz/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "fuzz/exit_code.h"
#include "fuzz/interrupt.h"
#include "fuzz/output.h"

namespace gatherfuzz {

namespace fs = std::filesystem;

namespace {

// Closed when it goes, unless it is standard input.
struct FileDescriptor {
  int number = -1;
  ~FileDescriptor() {
    if (number > STDERR_FILENO) close(number);
  }
};

}  // namespace

std::optional<std::string> read_file(const std::string& path, std::size_t limit, std::string& problem) {
  const FileDescriptor file{path == "-" ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  std::string content;
  char buffer[64 * 1024];
  while (file.number >= 0 && content.size() <= limit) {
    const ssize_t n = read(file.number, buffer, std::min(sizeof buffer, limit + 1 - content.size()));
    stop_if_interrupted();
    if (n == 0) return content;
    if (n > 0) content.append(buffer, static_cast<std::size_t>(n));
    if (n < 0 && errno != EINTR) break;
  }
  if (content.size() > limit) return content;
  problem = strerror(errno);
  return std::nullopt;
}

std::vector<std::string> programs_below(const std::string& folder, std::string& problem) {
  std::vector<std::string> found;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    std::error_code unknown;
    if (entry->path().extension() == ".program" && !entry->is_directory(unknown))
      found.push_back(entry->path().string());
  }
  if (error) problem = error.message();
  std::sort(found.begin(), found.end());
  return found;
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

void require_writable(const std::string& option, const std::string& folder) {
  const std::string probe = folder + "/.writable";
  try {
    write_file(probe, "", Sync::no);
  } catch (const InternalError& error) {
    throw UsageError(option + " " + folder + ": expected a folder to write to: " + error.what());
  }
  remove_file(probe);
}

void require_writable_file(const std::string& option, const std::string& file) {
  if (is_folder(file)) throw UsageError(option + " " + file + ": expected a file, found a folder");
  const std::string folder = fs::path(file).parent_path();
  require_writable(option, folder.empty() ? "." : folder);
}

void write_file(const std::string& path, const std::string& content, Sync sync) {
  std::error_code error;
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty())
    fs::create_directories(folder, error);
  if (error) throw InternalError("cannot write " + path + ": " + error.message());
  const std::string temporary = path + ".tmp";
  const auto fail = [&](bool created) {
    const std::string reason = strerror(errno);
    if (created) unlink(temporary.c_str());
    throw InternalError("cannot write " + path + ": " + reason);
  };
  {
    const FileDescriptor file{open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
    if (file.number < 0) fail(false);
    if (!write_all(file.number, content) || (sync == Sync::yes && fsync(file.number) != 0)) fail(true);
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) fail(true);
}

void remove_file(const std::string& path) {
  if (unlink(path.c_str()) != 0) throw InternalError("cannot remove " + path + ": " + strerror(errno));
}

}  // namespace gatherfuzz
