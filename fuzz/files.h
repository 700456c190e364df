// Files as the commands need them: read up to a limit, found below a folder, written all or not at all.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace gatherfuzz {

// The bytes of a file ("-": standard input), at most limit + 1 of them: more than `limit` says that it is too
// large. If it cannot be read, nothing, and `problem` says why. Throws Interrupted on Ctrl-C.
std::optional<std::string> read_file(const std::string& path, std::size_t limit, std::string& problem);

// All *.program files below a folder, sorted by path. Folders that cannot be read are told in `problem`.
std::vector<std::string> programs_below(const std::string& folder, std::string& problem);

bool is_folder(const std::string& path);
bool exists(const std::string& path);

// Makes the folder that this option names if it is missing, and tries to write there. Throws UsageError with
// the reason.
void require_writable(const std::string& option, const std::string& folder);
// The same for the folder of the file that the option names.
void require_writable_file(const std::string& option, const std::string& file);

// Whether a file must survive a loss of power, and not only the end of the process.
enum class Sync { no, yes };

// Writes to a temporary name beside `path`, syncs and renames, making folders where they are missing. Throws
// InternalError and leaves no file.
void write_file(const std::string& path, const std::string& content, Sync sync = Sync::yes);

// Throws InternalError.
void remove_file(const std::string& path);

}  // namespace gatherfuzz
