#include "fuzz/check.h"

#include <array>

#include "fuzz/exit_code.h"
#include "fuzz/failure_block.h"
#include "fuzz/files.h"
#include "fuzz/output.h"
#include "fuzz/report.h"
#include "fuzz/worker.h"

namespace gatherfuzz {

namespace {

class Check {
 public:
  explicit Check(const CheckOptions& options) : options_(options) {}

  int run() {
    Flags unused;
    apply_settings(unused, options_.set);  // before any program runs
    for (const std::string& input : options_.inputs) {
      if (is_folder(input)) {
        check_folder(input);
      } else {
        check_file(input);
      }
    }
    summarize();
    return exit_code();
  }

 private:
  void check_folder(const std::string& folder) {
    std::string problem;
    const std::vector<std::string> files = programs_below(folder, problem);
    for (const std::string& file : files) check_file(file);
    if (problem.empty() && files.empty()) problem = "expected *.program files below it, found none";
    if (!problem.empty()) bad(folder, {{0, problem}});
  }

  void check_file(const std::string& file) {
    ++files_;
    std::string problem;
    const std::optional<std::string> text = read_file(file, kMaxProgramBytes, problem);
    if (!text) return bad(file, {{0, problem}});
    if (text->size() > kMaxProgramBytes)
      return bad(file, {{1, "expected at most " + std::to_string(kMaxProgramBytes) + " bytes, found more"}});
    ParseResult parsed = parse_program(*text);
    if (!parsed.ok()) return bad(file, parsed.errors);
    apply_settings(parsed.program->flags, options_.set);
    for (const RuntimeKind runtime : options_.runtimes) judge(file, *parsed.program, runtime);
  }

  void judge(const std::string& file, const Program& program, RuntimeKind runtime) {
    Judgement j;
    j.file = file;
    j.runtime = runtime;
    j.outcome = worker_.run(program, runtime);
    j.as_expected = as_expected(program, j.outcome, runtime);
    if (j.outcome.verdict == Verdict::error) print_note(file + ": " + j.outcome.text);
    if (program.expect) j.expected = print_expectation(*program.expect).substr(std::string("expect ").size());
    tell(j);
    if (j.outcome.verdict == Verdict::fail && !program.expect && !options_.json) tell_story(j, program);
  }

  // A failure that the file does not expect is one to understand. What takes the process or all of its budget
  // with it is not run again.
  void tell_story(const Judgement& j, const Program& program) {
    const bool costly =
        j.outcome.failure == FailureClass::crash || j.outcome.failure == FailureClass::timeout;
    Failure failure;
    failure.program = failure.original = program;
    failure.runtime = j.runtime;
    failure.outcome = j.outcome;
    if (!costly) failure = examine(worker_, program, j.runtime, j.outcome);
    failure.file = j.file;
    failure.found_by = "check";
    for (const auto& [name, value] : options_.set) failure.settings += " --set " + name + "=" + value;
    print_note(failure_text(failure));
  }

  // A file or folder that is no program. Errors of files go to standard error, as compilers write them.
  void bad(const std::string& file, const std::vector<ParseError>& errors) {
    for (const ParseError& error : errors)
      print_note(file + ":" + (error.line > 0 ? std::to_string(error.line) + ":" : "") + " " + error.message);
    for (const RuntimeKind runtime : options_.runtimes) {
      Judgement j;
      j.file = file;
      j.runtime = runtime;
      j.outcome.verdict = Verdict::error;
      j.outcome.text = errors.front().message;
      j.as_expected = false;
      j.line = errors.front().line;
      tell(j);
    }
  }

  void tell(const Judgement& j) {
    ++counts_[static_cast<std::size_t>(j.outcome.verdict)];
    ++judgements_;
    if (!j.as_expected && j.outcome.verdict != Verdict::error) ++unexpected_;
    if (options_.json) return print_result(outcome_json(j));
    const std::string why = explanation(j);
    print_result(outcome_line(j) + (why.empty() ? "" : "\n" + why));
  }

  void summarize() const {
    std::string line = std::to_string(files_) + (files_ == 1 ? " file, " : " files, ") +
                       std::to_string(judgements_) + (judgements_ == 1 ? " run:" : " runs:");
    for (std::size_t v = 0; v < counts_.size(); ++v)
      line += (v == 0 ? " " : ", ") + std::to_string(counts_[v]) + " " + std::string(kVerdictNames[v]);
    line += "; " + std::to_string(unexpected_) + " not as expected";
    options_.json ? print_note(line) : print_result(line);
  }

  int exit_code() const {
    const auto count = [this](Verdict verdict) { return counts_[static_cast<std::size_t>(verdict)]; };
    if (count(Verdict::error) > 0) return kExitUsage;
    if (unexpected_ > 0) return kExitUnexpected;
    return count(Verdict::skipped) == judgements_ ? kExitAllSkipped : kExitAsExpected;
  }

  const CheckOptions& options_;
  Worker worker_;
  std::array<int, std::size(kVerdictNames)> counts_{};
  int files_ = 0;
  int judgements_ = 0;
  int unexpected_ = 0;
};

}  // namespace

int check(const CheckOptions& options) {
  return Check(options).run();
}

void apply_settings(Flags& flags, const std::vector<FlagSetting>& set) {
  for (const auto& [name, value] : set) {
    const std::string problem = set_flag(flags, name, value);
    if (!problem.empty()) throw UsageError("--set " + name + "=" + value + ": " + problem);
  }
}

}  // namespace gatherfuzz
