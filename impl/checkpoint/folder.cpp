#include "impl/checkpoint/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace gatherfuzz {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "step-";

struct FileDescriptor {
  int number = -1;
  ~FileDescriptor() {
    if (number >= 0) close(number);
  }
};

[[noreturn]] void fail(const std::string& path) {
  throw CheckpointNotWritten("cannot write the checkpoint " + path + ": " + strerror(errno));
}

void write_synced(const std::string& path, std::string_view content) {
  const FileDescriptor file{open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)};
  if (file.number < 0) fail(path);
  while (!content.empty()) {
    const ssize_t n = write(file.number, content.data(), content.size());
    if (n > 0) content.remove_prefix(static_cast<std::size_t>(n));
    if (n < 0 && errno != EINTR) fail(path);
  }
  if (fsync(file.number) != 0) fail(path);
}

// A rename is on the disk when its folder is.
void sync_folder(const std::string& path) {
  const FileDescriptor folder{open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (folder.number < 0 || fsync(folder.number) != 0) fail(path);
}

// Takes the place of a checkpoint that is there in one move: at no time is there none.
void publish(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) == 0) return;
  if (errno != ENOTEMPTY && errno != EEXIST) fail(to);
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) != 0) fail(to);
  std::error_code left;  // what was there before is only in the way
  fs::remove_all(from, left);
}

std::string folder_name(uint64_t step) {
  const std::string digits = std::to_string(step);
  return std::string(kPrefix) + std::string(8 - std::min<std::size_t>(8, digits.size()), '0') + digits;
}

std::optional<uint64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string digits = name.substr(kPrefix.size());
  const bool number = !digits.empty() && digits.size() <= 18 &&
                      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!number) return std::nullopt;
  return std::stoull(digits);
}

}  // namespace

std::string write_checkpoint_folder(const std::string& parent, uint64_t step,
                                    const std::vector<NamedFile>& files) {
  const std::string path = (fs::path(parent) / folder_name(step)).string();
  const std::string temporary = (fs::path(parent) / ("." + folder_name(step) + ".tmp")).string();
  std::error_code error;
  fs::create_directories(parent, error);
  if (!error) fs::remove_all(temporary, error);  // of a writer that was killed
  if (!error) fs::create_directory(temporary, error);
  if (error) throw CheckpointNotWritten("cannot write the checkpoint " + path + ": " + error.message());
  try {
    for (const NamedFile& file : files)
      write_synced((fs::path(temporary) / file.name).string(), file.content);
    sync_folder(temporary);
    publish(temporary, path);
    sync_folder(parent);
  } catch (const CheckpointNotWritten&) {
    fs::remove_all(temporary, error);
    throw;
  }
  return path;
}

std::optional<std::string> find_checkpoint(const std::string& path, std::string_view manifest_name) {
  std::error_code error;
  if (fs::exists(fs::path(path) / manifest_name, error)) return path;
  std::optional<uint64_t> latest;
  std::string found;
  fs::directory_iterator entry(path, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    const std::optional<uint64_t> step = step_of(entry->path().filename().string());
    if (!step || (latest && *step < *latest)) continue;
    latest = step;
    found = entry->path().string();
  }
  if (error || !latest) return std::nullopt;
  return found;
}

Checked<std::string> read_checkpoint_file(const std::string& folder, std::string_view name,
                                          std::size_t limit) {
  const std::string path = (fs::path(folder) / name).string();
  const FileDescriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  std::string content;
  std::vector<char> buffer(1 << 20);
  while (file.number >= 0 && content.size() <= limit) {
    const ssize_t n = read(file.number, buffer.data(), std::min(buffer.size(), limit + 1 - content.size()));
    if (n == 0) return content;
    if (n > 0) content.append(buffer.data(), static_cast<std::size_t>(n));
    if (n < 0 && errno != EINTR) break;
  }
  if (content.size() > limit)
    return CheckpointError{Damage::size, "expected at most " + std::to_string(limit) + " bytes, found more"};
  return CheckpointError{Damage::unreadable, strerror(errno)};
}

}  // namespace gatherfuzz
