#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "fuzz/corpus_command.h"
#include "fuzz/corpus_rules.h"
#include "fuzz/exit_code.h"
#include "fuzz/output.h"
#include "fuzz/program_file.h"

namespace gatherfuzz {

namespace {

namespace fs = std::filesystem;

const std::string kEndOfFile = "the end of the file";

// Without line ends; a text that ends as it should has an empty last line.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}

class FolderCheck {
 public:
  explicit FolderCheck(const std::string& folder) : folder_(read_program_folder(folder)) {
    for (const ProgramFile& file : folder_.files) by_path_[file.path] = &file;
    if (folder_.files.empty() && folder_.unreadable.empty())
      throw UsageError(folder + ": expected *.program files below it, found none");
  }

  int run() {
    for (const std::string& problem : folder_.unreadable) print_note(problem);
    for (const ProgramFile& file : folder_.files) check(file);
    const std::size_t files = folder_.files.size() + folder_.unreadable.size();
    print_result(std::to_string(files) + (files == 1 ? " file, " : " files, ") +
                 std::to_string(folder_.unreadable.size() + wrong_.size()) + " to repair");
    if (!folder_.unreadable.empty()) return kExitUsage;
    return wrong_.empty() ? kExitAsExpected : kExitUnexpected;
  }

 private:
  void wrong(const ProgramFile& file, const std::string& what, std::size_t line = 0) {
    wrong_.insert(file.path);
    print_result(file.path + (line > 0 ? ":" + std::to_string(line) : "") + ": " + what);
  }

  void check(const ProgramFile& file) {
    check_form(file);
    check_name(file);
    check_expectation(file);
    check_distinct(file);
  }

  void check_form(const ProgramFile& file) {
    const std::vector<std::string> found = lines_of(file.text);
    const std::vector<std::string> canonical = lines_of(print_program(file.program));
    for (std::size_t i = 0; i < std::max(found.size(), canonical.size()); ++i) {
      const std::string here = i < found.size() ? "'" + found[i] + "'" : kEndOfFile;
      const std::string wanted = i < canonical.size() ? "'" + canonical[i] + "'" : kEndOfFile;
      if (here == wanted) continue;
      return wrong(file, "not in canonical form: write " + wanted + " in place of " + here, i + 1);
    }
  }

  void check_name(const ProgramFile& file) {
    const std::string name = name_of_file(file.path);
    if (const std::string problem = name_problem(name); !problem.empty())
      return wrong(file, "rename it: " + problem);
    const std::string wanted = program_file_name(name, file.program);
    if (fs::path(file.path).filename() != wanted)
      return wrong(file, "rename it to " + wanted + ": it has " +
                             (file.program.faults.empty() ? "no fault" : "a fault"));
    const bool is_hash = name.size() == 16 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (is_hash && name != hash_text(file.program))
      wrong(file, "rename it to " + hash_text(file.program) + ".program, which is its hash");
  }

  void check_expectation(const ProgramFile& file) {
    const FolderRules rules = folder_rules(fs::path(file.path).parent_path().filename().string());
    if (rules.expectation && !file.program.expect)
      wrong(file, "add an `expect` line: every program of this folder says what it comes to");
    if (!rules.pairs || file.program.faults.empty()) return;
    const std::string half = beside(file, ".program");
    const auto found = by_path_.find(half);
    if (found == by_path_.end()) return wrong(file, "add " + half + ": the same program without its fault");
    if (behaviour_hash(found->second->program) != behaviour_hash(healthy_half(file.program)))
      wrong(file, "make it differ from " + half + " by its fault and its expectation alone");
  }

  // The healthy half of a pair may also be that of another one.
  void check_distinct(const ProgramFile& file) {
    const auto [entry, first] = seen_.emplace(behaviour_hash(file.program), &file);
    if (first || is_half(file) || is_half(*entry->second)) return;
    wrong(file, "remove it: it does what " + entry->second->path + " does");
  }

  bool is_half(const ProgramFile& file) const { return by_path_.contains(beside(file, ".fault.program")); }

  static std::string beside(const ProgramFile& file, const char* ending) {
    return (fs::path(file.path).parent_path() / (name_of_file(file.path) + ending)).string();
  }

  ProgramFolder folder_;
  std::map<std::string, const ProgramFile*> by_path_;
  std::map<uint64_t, const ProgramFile*> seen_;  // by what they do
  std::set<std::string> wrong_;
};

}  // namespace

int corpus_check(const std::string& folder) {
  return FolderCheck(folder).run();
}

}  // namespace gatherfuzz
