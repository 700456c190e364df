// `corpus minimize` and `corpus merge`: which programs are worth their time, by the host states they reach.
#include <algorithm>
#include <filesystem>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "fuzz/corpus_command.h"
#include "fuzz/corpus_rules.h"
#include "fuzz/exit_code.h"
#include "fuzz/files.h"
#include "fuzz/output.h"
#include "fuzz/program_file.h"
#include "fuzz/report.h"
#include "fuzz/worker.h"

namespace gatherfuzz {

namespace {

namespace fs = std::filesystem;

using States = std::vector<uint32_t>;

std::string counted_states(std::size_t n) {
  return with_commas(n) + (n == 1 ? " state" : " states");
}

// Runs programs on symbolic, where states are the same and time is short. A failure that the file does not
// expect is told, and decides the exit code.
class StateRunner {
 public:
  // Nothing if the program failed.
  std::optional<States> run(const ProgramFile& file) {
    Outcome outcome = worker_.run(file.program, RuntimeKind::symbolic);
    if (outcome.verdict != Verdict::fail) return std::move(outcome.states);
    if (!as_expected(file.program, outcome, RuntimeKind::symbolic)) {
      print_note(file.path + ": " + verdict_text(outcome) +
                 ": left as it is; gatherfuzz corpus add keeps it");
      code_ = std::max(code_, kExitUnexpected);
    }
    return std::nullopt;
  }

  std::vector<ProgramFile> read(const std::string& folder) {
    ProgramFolder read = read_program_folder(folder);
    for (const std::string& problem : read.unreadable) print_note(problem);
    if (!read.unreadable.empty()) code_ = kExitUsage;
    return std::move(read.files);
  }

  int exit_code() const { return code_; }

 private:
  Worker worker_;
  int code_ = kExitAsExpected;
};

Program bare(const Program& program) {
  Program result = without_comments(program);
  result.expect.reset();
  return result;
}

// Small ones first, so that of programs that reach the same the small one is taken.
void sort_by_size(std::vector<ProgramFile>& files) {
  std::vector<std::pair<std::size_t, std::size_t>> order;
  for (std::size_t i = 0; i < files.size(); ++i)
    order.emplace_back(print_program(bare(files[i].program)).size(), i);
  std::sort(order.begin(), order.end());
  std::vector<ProgramFile> sorted;
  for (const auto& [size, i] : order) sorted.push_back(std::move(files[i]));
  files = std::move(sorted);
}

// Adds to `all`; returns how many were new.
std::size_t reach(std::unordered_set<uint32_t>& all, const States& states) {
  std::size_t fresh = 0;
  for (const uint32_t state : states) fresh += all.insert(state).second ? 1 : 0;
  return fresh;
}

// A few of `sets` that together hold all that any holds beyond `covered`, by index: always the set with most
// that is new, the first of equals; then without those that later ones made superfluous.
std::vector<std::size_t> cover(const std::vector<States>& sets, std::unordered_set<uint32_t> covered) {
  std::unordered_map<uint32_t, int> holders;  // among the chosen
  const auto gain = [&](std::size_t i) {
    return std::count_if(sets[i].begin(), sets[i].end(), [&](uint32_t s) { return !covered.contains(s); });
  };
  // What a set would add only shrinks, so that a stale entry never hides a better one.
  std::priority_queue<std::pair<std::ptrdiff_t, std::ptrdiff_t>> queue;
  for (std::size_t i = 0; i < sets.size(); ++i) queue.emplace(gain(i), -static_cast<std::ptrdiff_t>(i));
  const std::unordered_set<uint32_t> before = covered;
  std::vector<std::size_t> chosen;
  while (!queue.empty() && queue.top().first > 0) {
    const auto [was, place] = queue.top();
    queue.pop();
    const auto i = static_cast<std::size_t>(-place);
    if (const std::ptrdiff_t now = gain(i); now < was) {
      queue.emplace(now, place);
      continue;
    }
    chosen.push_back(i);
    for (const uint32_t s : sets[i]) ++holders[s];
    covered.insert(sets[i].begin(), sets[i].end());
  }
  std::erase_if(chosen, [&](std::size_t i) {
    const bool needed = std::any_of(sets[i].begin(), sets[i].end(),
                                    [&](uint32_t s) { return holders[s] == 1 && !before.contains(s); });
    if (!needed)
      for (const uint32_t s : sets[i]) --holders[s];
    return !needed;
  });
  return chosen;
}

}  // namespace

int corpus_minimize(const std::string& folder) {
  StateRunner runner;
  std::vector<ProgramFile> files = runner.read(folder);
  sort_by_size(files);
  std::unordered_set<uint32_t> covered;
  std::vector<const ProgramFile*> candidates;
  std::vector<States> sets;
  for (const ProgramFile& file : files) {
    if (!file.program.faults.empty()) continue;  // what a fault reaches, no campaign may count on
    const std::optional<States> states = runner.run(file);
    if (!states) continue;
    if (file.program.expect) {
      reach(covered, *states);
    } else {
      candidates.push_back(&file);
      sets.push_back(*states);
    }
  }
  std::vector<bool> stays(candidates.size(), false);
  for (const std::size_t i : cover(sets, covered)) stays[i] = true;
  std::size_t removed = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    reach(covered, sets[i]);
    if (stays[i]) continue;
    remove_file(candidates[i]->path);
    print_result("removed " + candidates[i]->path);
    ++removed;
  }
  print_result(with_commas(files.size() - removed) + " of " + with_commas(files.size()) + " programs stay, " +
               counted_states(covered.size()));
  return runner.exit_code();
}

int corpus_merge(const std::string& into, const std::vector<std::string>& from) {
  StateRunner runner;
  std::vector<ProgramFile> files;
  for (const std::string& folder : from)
    for (ProgramFile& file : runner.read(folder)) files.push_back(std::move(file));
  std::unordered_set<uint32_t> covered;
  if (fs::exists(into))
    for (const ProgramFile& file : runner.read(into))
      if (file.program.faults.empty()) reach(covered, runner.run(file).value_or(States()));
  sort_by_size(files);
  std::size_t added = 0, fresh = 0;
  for (const ProgramFile& file : files) {
    if (!file.program.faults.empty()) continue;
    const std::size_t n = reach(covered, runner.run(file).value_or(States()));
    if (n == 0) continue;
    const Program program = bare(file.program);
    const std::string path = (fs::path(into) / (hash_text(program) + ".program")).string();
    write_file(path, print_program(program));
    print_result("added " + path + "  " + file.path);
    ++added;
    fresh += n;
  }
  print_result(with_commas(added) + " of " + with_commas(files.size()) + " programs added, " +
               with_commas(fresh) + " new of " + counted_states(covered.size()));
  return runner.exit_code();
}

}  // namespace gatherfuzz
