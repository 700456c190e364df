#include "fuzz/campaign.h"

#include <array>
#include <chrono>
#include <set>

#include "fuzz/campaign_inputs.h"
#include "fuzz/exit_code.h"
#include "fuzz/failure_block.h"
#include "fuzz/files.h"
#include "fuzz/interrupt.h"
#include "fuzz/output.h"
#include "impl/runtime/symbolic/term.h"
#include "impl/training/flag_text.h"
#include "properties/action_pairs.h"

namespace gatherfuzz {

namespace {

constexpr double kShownEvery = 5.0;      // seconds, where there is no terminal
constexpr double kRefreshedEvery = 0.1;  // on a terminal

class Campaign {
 public:
  explicit Campaign(const CampaignOptions& options) : options_(options), inputs_(options) {}

  int run() {
    try {
      while (!over() && (failures_.empty() || options_.keep_going)) run_program_number(programs_ + 1);
    } catch (const Interrupted&) {
      summarize();
      throw;
    }
    summarize();
    if (programs_ == 0) return kExitInternal;
    return failures_.empty() ? kExitAsExpected : kExitUnexpected;
  }

 private:
  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  bool over() const {
    return (options_.runs > 0 && programs_ >= options_.runs) || elapsed() >= options_.seconds;
  }

  void run_program_number(uint64_t number) {
    Program program = inputs_.next(mix(options_.seed, number));
    if (options_.fault) program.faults = {*options_.fault};
    Verdict verdict = Verdict::pass;
    for (const RuntimeKind runtime : options_.runtimes) {
      if (runtime != options_.runtimes.front() && number % kOtherRuntimesEvery != 1) continue;
      const Outcome outcome = worker_.run(program, runtime);
      ++runs_[static_cast<std::size_t>(runtime)];
      twins_ += outcome.twin ? 1 : 0;
      verdict = outcome.verdict;
      if (verdict == Verdict::fail) keep(program, runtime, outcome, number);
      if (verdict != Verdict::fail) inputs_.learn(program, outcome.states);
      if (verdict != Verdict::pass) break;
    }
    ++programs_;
    pairs_.merge(action_pairs_of(program));
    ++counts_[static_cast<std::size_t>(verdict)];
    show();
  }

  void keep(const Program& program, RuntimeKind runtime, const Outcome& outcome, uint64_t number) {
    const std::string file = failure_path(options_.out, outcome);
    if (!failures_.insert(file).second) return;
    const std::string original = print_program(with_its_twin(program, outcome));
    write_file(file, original);  // before anything else can go wrong
    const double found_after = elapsed();
    Failure failure = investigate(worker_, program, runtime, outcome);
    failure.file = file;
    failure.found_by = "builtin, seed " + std::to_string(options_.seed) + ", program " +
                       std::to_string(number) + ", " + fixed_text(found_after, 1) + " s";
    write_file(unshrunk_path(options_.out, outcome), stored_text(failure.original, failure));
    write_file(file, stored_text(failure.program, failure));
    progress_.end();
    print_note(failure_text(failure));
  }

  uint64_t count(Verdict verdict) const { return counts_[static_cast<std::size_t>(verdict)]; }

  std::string progress_text() const {
    std::string line = with_commas(programs_) + " programs, " + with_commas(count(Verdict::pass)) +
                       " pass, " + with_commas(count(Verdict::refused)) + " refused, " +
                       with_commas(count(Verdict::vacuous)) + " vacuous, " +
                       with_commas(count(Verdict::fail)) + " failures";
    if (options_.keep_going) line += " of " + with_commas(failures_.size()) + " kinds";
    if (options_.fault) line += ", " + with_commas(count(Verdict::error)) + " not reached";
    return line;
  }

  void show() {
    if (elapsed() - shown_at_ < (progress_.on_terminal() ? kRefreshedEvery : kShownEvery)) return;
    shown_at_ = elapsed();
    progress_.show(progress_text());
  }

  void summarize() {
    progress_.end();
    std::string line = progress_text() + " (";
    for (const RuntimeKind runtime : options_.runtimes)
      line += with_commas(runs_[static_cast<std::size_t>(runtime)]) + " on " + std::string(name_of(runtime)) +
              ", ";
    line += with_commas(twins_) + " beside a twin, " + with_commas(inputs_.states()) + " states, " +
            with_commas(inputs_.kept()) + " programs kept, " + with_commas(pairs_.size()) + " of " +
            with_commas(legal_action_pairs().size()) + " action pairs, ";
    print_result(line + "seed " + std::to_string(options_.seed) + ", " + fixed_text(elapsed(), 1) + " s)");
  }

  const CampaignOptions& options_;
  CampaignInputs inputs_;
  Worker worker_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double shown_at_ = 0.0;
  ProgressLine progress_;
  uint64_t programs_ = 0;
  uint64_t twins_ = 0;                                       // runs beside one
  std::array<uint64_t, std::size(kVerdictNames)> counts_{};  // of programs, by verdict
  std::array<uint64_t, std::size(kRuntimeNames)> runs_{};
  std::set<ActionPair> pairs_;      // of all programs
  std::set<std::string> failures_;  // their files, which class and signature name
};

}  // namespace

int fuzz(const CampaignOptions& options) {
  return Campaign(options).run();
}

FaultSpec parse_fault(const std::string& text) {
  const ParseResult parsed = parse_program("gatherfuzz program v1\nfault " + text + "\n");
  if (!parsed.ok()) throw UsageError("--fault: " + parsed.errors.front().message);
  if (parsed.program->faults.size() != 1)
    throw UsageError("--fault: expected one fault, found " + in_quotes(text));
  return parsed.program->faults.front();
}

double parse_duration(const std::string& text) {
  const std::size_t unit = text.find_first_of("smh");
  const double factor = unit == std::string::npos ? 1.0
                        : text[unit] == 's'       ? 1.0
                        : text[unit] == 'm'       ? 60.0
                                                  : 3600.0;
  const std::optional<double> number = parse_real(text.substr(0, unit));
  if (!number || *number <= 0 || (unit != std::string::npos && unit + 1 != text.size()))
    throw UsageError("--time: expected a duration such as 45s, 10m or 8h, found " + in_quotes(text));
  return *number * factor;
}

}  // namespace gatherfuzz
