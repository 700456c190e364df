#include "fuzz/campaign.h"

#include <chrono>

#include "fuzz/campaign_counts.h"
#include "fuzz/campaign_inputs.h"
#include "fuzz/exit_code.h"
#include "fuzz/failure_block.h"
#include "fuzz/failure_store.h"
#include "fuzz/files.h"
#include "fuzz/output.h"
#include "fuzz/worker_pool.h"

namespace gatherfuzz {

namespace {

constexpr double kShownEvery = 5.0;      // seconds, where there is no terminal
constexpr double kRefreshedEvery = 0.1;  // on a terminal

class Campaign {
 public:
  explicit Campaign(const CampaignOptions& options)
      : options_(options), inputs_(options), failures_(options.out), pool_(options.jobs) {
    if (options.runs) limit_ = *options.runs > 0 ? *options.runs : inputs_.seeds();
    try {
      require_writable(options.out);
    } catch (const InternalError& error) {
      throw UsageError("--out " + options.out + ": expected a folder to write to: " + error.what());
    }
  }

  int run() {
    try {
      while (failures_.kinds() == 0 || options_.keep_going) {
        while (pool_.size() < window() && !over()) pool_.add(draw(counts_.programs + pool_.size() + 1));
        if (pool_.size() == 0) break;
        judge(pool_.next());
      }
    } catch (const Interrupted&) {
      summarize();
      throw;
    } catch (const InternalError&) {
      summarize();
      throw;
    }
    summarize();
    if (counts_.programs == 0) return nothing_ran();
    return failures_.kinds() == 0 ? kExitAsExpected : kExitUnexpected;
  }

 private:
  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  // Programs under way. With several workers one that is slow, such as the one of kOtherRuntimesEvery on
  // host, must not hold up the others.
  std::size_t window() const { return options_.jobs == 1 ? 1 : kOtherRuntimesEvery * options_.jobs; }

  bool replays() const { return options_.runs == 0; }

  bool over() const {
    return (limit_ && counts_.programs + pool_.size() >= *limit_) || elapsed() >= options_.seconds;
  }

  Task draw(uint64_t number) {
    Task task;
    task.number = number;
    task.program = inputs_.next(number);
    if (options_.fault) task.program.faults = {*options_.fault};
    for (const RuntimeKind runtime : options_.runtimes) {
      if (runtime == options_.runtimes.front() || replays() || number % kOtherRuntimesEvery == 1)
        task.runtimes.push_back(runtime);
    }
    return task;
  }

  void judge(const Task& task) {
    for (std::size_t i = 0; i < task.outcomes.size(); ++i) {
      const Outcome& outcome = task.outcomes[i];
      if (outcome.verdict == Verdict::fail) {
        keep(task, task.runtimes[i], outcome);
      } else {
        inputs_.learn(task.program, outcome.states);
      }
    }
    counts_.add(task.program, task.runtimes, task.outcomes);
    show();
  }

  void keep(const Task& task, RuntimeKind runtime, const Outcome& outcome) {
    if (!failures_.is_new(outcome)) return;
    const auto kept =
        failures_.keep(task.program, runtime, outcome,
                       "builtin, seed " + options_.seed.text + ", program " + std::to_string(task.number) +
                           ", " + fixed_text(elapsed(), 1) + " s");
    known_ += kept.known ? 1 : 0;
    progress_.end();
    if (kept.known) print_note("known since an earlier campaign, and left as it is: " + kept.failure.file);
    print_note(failure_text(kept.failure));
  }

  int nothing_ran() const {
    if (replays())
      print_note("fuzz: expected programs to replay in --corpus " + options_.corpus + ", found none");
    return kExitInternal;
  }

  std::string progress_text() const {
    std::string line =
        with_commas(counts_.programs) + " programs, " + with_commas(counts_.of(Verdict::pass)) + " pass, " +
        with_commas(counts_.of(Verdict::refused)) + " refused, " + with_commas(counts_.of(Verdict::vacuous)) +
        " vacuous, " + with_commas(counts_.of(Verdict::fail)) + " failures";
    if (options_.keep_going) line += " of " + with_commas(failures_.kinds()) + " kinds";
    if (known_ > 0) line += ", " + with_commas(known_) + " known before";
    if (options_.fault) line += ", " + with_commas(counts_.of(Verdict::error)) + " not reached";
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
      line += with_commas(counts_.runs[static_cast<std::size_t>(runtime)]) + " on " +
              std::string(name_of(runtime)) + ", ";
    line += with_commas(counts_.twins) + " beside a twin, " + with_commas(inputs_.states()) + " states, " +
            with_commas(inputs_.kept()) + " programs kept, " + with_commas(counts_.pairs.size()) + " of " +
            with_commas(legal_action_pairs().size()) + " action pairs, ";
    if (counts_.programs > 0) print_note(counts_.shapes_text());
    print_result(line + "seed " + options_.seed.text + ", " + fixed_text(elapsed(), 1) + " s)");
  }

  const CampaignOptions& options_;
  CampaignInputs inputs_;
  FailureStore failures_;
  WorkerPool pool_;
  std::optional<uint64_t> limit_;  // of programs
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double shown_at_ = 0.0;
  ProgressLine progress_;
  CampaignCounts counts_;
  uint64_t known_ = 0;  // kinds that an earlier campaign stored
};

}  // namespace

int fuzz(const CampaignOptions& options) {
  if (options.runs == 0 && options.corpus.empty())
    throw UsageError("--runs 0 replays a corpus: expected --corpus DIR");
  return Campaign(options).run();
}

}  // namespace gatherfuzz
