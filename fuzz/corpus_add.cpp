#include <ctime>
#include <filesystem>

#include "fuzz/corpus_command.h"
#include "fuzz/corpus_rules.h"
#include "fuzz/exit_code.h"
#include "fuzz/failure.h"
#include "fuzz/files.h"
#include "fuzz/output.h"
#include "fuzz/program_file.h"
#include "fuzz/report.h"
#include "fuzz/version.h"

namespace gatherfuzz {

namespace {

constexpr RuntimeKind kRuntimes[] = {RuntimeKind::symbolic, RuntimeKind::host};

std::string today() {
  char text[16];
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  std::strftime(text, sizeof text, "%Y-%m-%d", gmtime_r(&now, &utc));
  return text;
}

Expectation expectation_of(const Outcome& outcome) {
  Expectation e;
  e.verdict = outcome.verdict;
  e.reason = outcome.reason;
  e.failure = outcome.failure;
  return e;
}

// What no file can be made of: exit 1.
struct NotAdded {
  std::string why;
};

class Adding {
 public:
  explicit Adding(const CorpusAddOptions& options)
      : options_(options), file_(read_program_file(options.input)) {}

  void run() {
    const Outcome found = judge();
    const std::string name = name_for(found);
    Program healthy = healthy_half(program_);
    refuse_duplicates(name);
    program_.top_comments.push_back(provenance(found));
    if (!program_.faults.empty()) add_half(name, healthy);
    store(name, program_);
  }

 private:
  // Leaves in program_ what it comes to; returns the outcome that decides that, of the first runtime to fail.
  Outcome judge() {
    program_ = file_.program;
    program_.expect.reset();
    std::optional<Outcome> decides;
    for (const RuntimeKind runtime : kRuntimes) {
      const Outcome outcome = worker_.run(program_, runtime);
      if (outcome.verdict == Verdict::error) throw UsageError(file_.path + ": " + outcome.text);
      if (!decides || (outcome.verdict == Verdict::fail && decides->verdict != Verdict::fail))
        decides = outcome, runtime_ = runtime;
    }
    program_ = with_its_twin(program_, *decides);
    program_.expect = file_.program.expect ? *file_.program.expect : expectation_of(*decides);
    demand_expected(program_, file_.path);
    return *decides;
  }

  // The file as it will be read by tests: its expectation decides which twin it has.
  void demand_expected(const Program& program, const std::string& what) {
    bool holds = true;
    std::string found;
    for (const RuntimeKind runtime : kRuntimes) {
      Outcome outcome = worker_.run(program, runtime);
      found += std::string(found.empty() ? "" : ", ") + std::string(name_of(runtime)) + " " +
               verdict_text(outcome);
      holds = as_expected(program, outcome, runtime) && holds;
    }
    if (!holds)
      throw NotAdded{what + ": '" + print_expectation(*program.expect) +
                     "' must hold on every runtime, found " + found};
  }

  std::string name_for(const Outcome& found) const {
    if (options_.name.empty() && found.verdict != Verdict::fail)
      throw UsageError(file_.path + ": expected --name NAME for a program that does not fail (" +
                       verdict_text(found) + ")");
    const std::string name = options_.name.empty()
                                 ? std::string(name_of(*found.failure)) + "-" + signature_text(found)
                                 : options_.name;
    if (const std::string problem = name_problem(name); !problem.empty())
      throw UsageError("--name: " + problem);
    return name;
  }

  void refuse_duplicates(const std::string& name) const {
    if (!is_folder(options_.folder)) return;
    for (const ProgramFile& other : read_program_folder(options_.folder).files) {
      if (behaviour_hash(other.program) == behaviour_hash(program_))
        throw NotAdded{file_.path + ": " + other.path + " is the same program"};
      if (name_of_file(other.path) == name)
        throw NotAdded{file_.path + ": " + other.path +
                       " has this name already; choose another one with --name"};
    }
  }

  std::string provenance(const Outcome& found) const {
    std::string text = " Added " + today() + " by " + version_text();
    if (found.failure)
      text += ": " + std::string(name_of(*found.failure)) + " on " + std::string(name_of(runtime_)) +
              ", signature " + signature_text(found);
    return text;
  }

  // Written first: a healthy program may stand alone.
  void add_half(const std::string& name, Program healthy) {
    const Outcome outcome = worker_.run(healthy, RuntimeKind::symbolic);
    if (outcome.verdict == Verdict::fail)
      throw NotAdded{file_.path + ": without its fault it fails too (" + verdict_text(outcome) +
                     "); remove the fault and add that program"};
    healthy.expect = expectation_of(outcome);
    healthy.top_comments = {" The healthy half of " + program_file_name(name, program_)};
    demand_expected(healthy, file_.path + " without its fault");
    store(name, healthy);
  }

  void store(const std::string& name, const Program& program) const {
    const std::string path =
        (std::filesystem::path(options_.folder) / program_file_name(name, program)).string();
    write_file(path, print_program(with_settled_comments(program)));
    print_result("added " + path + "  " + print_expectation(*program.expect));
  }

  const CorpusAddOptions& options_;
  ProgramFile file_;
  Program program_;
  RuntimeKind runtime_ = kRuntimes[0];
  Worker worker_;
};

}  // namespace

int corpus_add(const CorpusAddOptions& options) {
  try {
    Adding(options).run();
    return kExitAsExpected;
  } catch (const NotAdded& reason) {
    print_note("corpus add: " + reason.why);
    return kExitUnexpected;
  }
}

}  // namespace gatherfuzz
