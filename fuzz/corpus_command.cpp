#include "fuzz/corpus_command.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "fuzz/exit_code.h"
#include "fuzz/failure.h"
#include "fuzz/files.h"
#include "fuzz/output.h"
#include "fuzz/report.h"
#include "fuzz/version.h"
#include "properties/program_lines.h"

namespace gatherfuzz {

namespace {

struct Entry {
  std::string file;
  std::string text;
  Program program;
};

// What makes programs the same: neither comments nor what they expect.
uint64_t identity(Program program) {
  program.expect.reset();
  return program_hash(program);
}

Entry read_entry(const std::string& file) {
  std::string problem;
  const std::optional<std::string> text = read_file(file, kMaxProgramBytes, problem);
  if (!text) throw UsageError(file + ": " + problem);
  ParseResult parsed = parse_program(*text);
  if (!parsed.ok())
    throw UsageError(file + ":" + std::to_string(parsed.errors.front().line) + ": " +
                     parsed.errors.front().message);
  return {file, *text, std::move(*parsed.program)};
}

std::vector<Entry> read_folder(const std::string& folder) {
  std::string problem;
  std::vector<Entry> entries;
  for (const std::string& file : programs_below(folder, problem)) entries.push_back(read_entry(file));
  if (!problem.empty()) throw UsageError(folder + ": " + problem);
  return entries;
}

std::string name_of_file(const std::string& file) {
  return std::filesystem::path(file).filename().string();
}

// Its failure's class and signature, or nothing.
std::string failure_name(const Outcome& outcome) {
  if (!outcome.failure) return "";
  return std::string(name_of(*outcome.failure)) + "-" + signature_text(outcome);
}

Expectation found(const Outcome& outcome) {
  Expectation e;
  e.verdict = outcome.verdict;
  e.reason = outcome.reason;
  e.failure = outcome.failure;
  return e;
}

// NAME.program beside NAME.fault.program: several faults may share what is healthy.
bool is_healthy_of_a_pair(const std::string& file) {
  const std::string ending = ".program";
  return std::filesystem::exists(file.substr(0, file.size() - ending.size()) + ".fault" + ending);
}

void remove_file(const std::string& file) {
  std::error_code error;
  std::filesystem::remove(file, error);
  if (error) throw InternalError("cannot remove " + file + ": " + error.message());
}

// Shorter programs first, then by name.
void sort_by_length(std::vector<Entry>& entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.text.size() < b.text.size(); });
}

bool adds_states(Worker& worker, const Entry& entry, std::set<uint32_t>& known) {
  bool fresh = false;
  for (const uint32_t state : worker.run(entry.program, RuntimeKind::symbolic).states)
    fresh = known.insert(state).second || fresh;
  return fresh;
}

}  // namespace

int corpus_check(const CorpusOptions& options) {
  std::map<uint64_t, std::string> seen;
  int problems = 0;
  const auto complain = [&](const std::string& file, const std::string& what) {
    print_result(file + ": " + what);
    ++problems;
  };
  const std::vector<Entry> entries = read_folder(options.folder);
  if (entries.empty()) throw UsageError(options.folder + ": expected *.program files below it, found none");
  for (const Entry& e : entries) {
    if (print_program(e.program) != e.text)
      complain(e.file, "expected the canonical text, found another; gatherfuzz corpus add writes it");
    const auto [other, fresh] = seen.emplace(identity(e.program), e.file);
    if (!fresh && !is_healthy_of_a_pair(e.file))
      complain(e.file, "expected a program of its own, found that of " + other->second);
    if (e.file.find("regressions/") != std::string::npos && !e.program.expect)
      complain(e.file, "expected an expect line, found none");
  }
  print_note("corpus check: " + with_commas(entries.size()) + " programs, " + std::to_string(problems) +
             " problems");
  return problems == 0 ? kExitAsExpected : kExitUnexpected;
}

int corpus_add(const CorpusOptions& options) {
  Entry entry = read_entry(options.file);
  const std::vector<Entry> others =
      is_folder(options.folder) ? read_folder(options.folder) : std::vector<Entry>();
  for (const Entry& other : others)
    if (identity(other.program) == identity(entry.program)) {
      print_note("corpus add: " + options.file + ": " + other.file + " is this program already");
      return kExitUnexpected;
    }
  Worker worker;
  const Outcome outcome = worker.run(entry.program, RuntimeKind::symbolic);
  const Outcome host = worker.run(entry.program, RuntimeKind::host);
  // What only numbers show is found on host.
  const Outcome& telling = outcome.verdict == Verdict::fail ? outcome : host;
  if (telling.verdict == Verdict::error) throw UsageError(options.file + ": " + telling.text);
  const std::string name = options.name.empty() ? failure_name(telling) : options.name;
  if (name.empty())
    throw UsageError("--name: expected a name for a program that does not fail (" +
                     std::string(name_of(telling.verdict)) + ")");
  entry.program = with_its_twin(std::move(entry.program), telling);
  entry.program.expect = found(telling);
  entry.program.top_comments.push_back(" Added by " + version_text() + ".");
  for (const RuntimeKind runtime : {RuntimeKind::symbolic, RuntimeKind::host}) {
    Outcome again = worker.run(entry.program, runtime);
    if (!as_expected(entry.program, again, runtime))
      throw UsageError(options.file + ": expected " + print_expectation(*entry.program.expect) + " on " +
                       std::string(name_of(runtime)) + " too, found " + std::string(name_of(again.verdict)));
  }
  const std::string ending = entry.program.faults.empty() ? ".program" : ".fault.program";
  const std::string path = options.folder + "/" + name + ending;
  if (std::filesystem::exists(path))
    throw UsageError(path + ": there is another program of this name; give a --name");
  write_file(path, print_program(entry.program));
  print_result(path);
  return kExitAsExpected;
}

int corpus_minimize(const CorpusOptions& options) {
  std::vector<Entry> entries = read_folder(options.folder);
  sort_by_length(entries);
  Worker worker;
  std::set<uint32_t> known;
  std::vector<std::string> superfluous;
  for (const Entry& e : entries)
    if (!adds_states(worker, e, known)) superfluous.push_back(e.file);
  for (const std::string& file : superfluous) remove_file(file);  // after all have run
  print_result("corpus minimize: " + with_commas(entries.size() - superfluous.size()) + " of " +
               with_commas(entries.size()) + " programs left, " + with_commas(known.size()) + " states");
  return kExitAsExpected;
}

int corpus_merge(const CorpusOptions& options) {
  Worker worker;
  std::set<uint32_t> known;
  if (is_folder(options.folder))
    for (const Entry& e : read_folder(options.folder)) adds_states(worker, e, known);
  std::vector<Entry> others;
  for (const std::string& folder : options.from)
    for (Entry& e : read_folder(folder)) others.push_back(std::move(e));
  sort_by_length(others);
  uint64_t added = 0;
  for (const Entry& e : others) {
    if (!e.program.faults.empty() || !adds_states(worker, e, known)) continue;
    write_file(options.folder + "/" + name_of_file(e.file), print_program(e.program));
    ++added;
  }
  print_result("corpus merge: " + with_commas(added) + " of " + with_commas(others.size()) +
               " programs added, " + with_commas(known.size()) + " states");
  return kExitAsExpected;
}

}  // namespace gatherfuzz
