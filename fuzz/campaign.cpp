#include "fuzz/campaign.h"

#include <chrono>
#include <deque>

#include "fuzz/campaign_counts.h"
#include "fuzz/campaign_inputs.h"
#include "fuzz/campaign_record.h"
#include "fuzz/campaign_state.h"
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
constexpr double kSavedEvery = 1.0;
constexpr std::size_t kMostStateBytes = std::size_t{1} << 30;

class Campaign {
 public:
  explicit Campaign(const CampaignOptions& options)
      : options_(options),
        inputs_(options),
        failures_(options.out),
        pool_(options.jobs, options.out + "/running"),
        record_(options) {
    if (options.runs) limit_ = *options.runs > 0 ? *options.runs : inputs_.seeds();
    require_writable("--out", options.out);
    if (options.resume) resume();
  }

  int run() {
    try {
      save();
      record_.begin(seconds_before_);
      run_left_programs();
      while (counts_.of(Verdict::fail) == 0 || options_.keep_going) {
        while (pool_.size() < window() && !over()) pool_.add(draw(counts_.programs + pool_.size() + 1));
        if (pool_.size() == 0) break;
        judge(pool_.next());
      }
      save();
    } catch (const Interrupted&) {
      summarize();
      save();
      record_.end(figures(), kExitInterrupted);
      throw;
    } catch (const InternalError&) {
      summarize();
      try {
        record_.end(figures(), kExitInternal);
      } catch (const InternalError&) {  // no wonder
      }
      throw;
    }
    summarize();
    if (counts_.programs == 0 && replays())
      print_note("fuzz: expected programs to replay in --corpus " + options_.corpus + ", found none");
    record_.end(figures(), exit_code());
    return exit_code();
  }

 private:
  double elapsed() const {
    return seconds_before_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
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
    built_on_.push_back(inputs_.kept());
    if (!resumed_.empty()) {
      built_on_.back() = resumed_.front();
      resumed_.pop_front();
    }
    task.program = inputs_.next(number, built_on_.back());
    if (options_.fault) task.program.faults = {*options_.fault};
    task.runtimes = runtimes_of(number);
    return task;
  }

  std::vector<RuntimeKind> runtimes_of(uint64_t number) const {
    if (replays() || number % kOtherRuntimesEvery == 1) return options_.runtimes;
    return {options_.runtimes.front()};
  }

  // What was running when the campaign was killed may be what killed it: it is told first, and counts when
  // the campaign comes to it by its number.
  void run_left_programs() {
    const std::vector<LeftProgram> left = left_programs(options_.out);
    if (!options_.resume && !left.empty())
      print_note("fuzz: " + options_.out + "/running: left by a campaign that was killed; --resume runs it");
    for (const LeftProgram& one : left) {
      if (options_.resume && one.program) run_left_program(one);
      remove_file(one.file);
    }
  }

  void run_left_program(const LeftProgram& left) {
    Worker worker;
    Task task;
    task.number = left.number;
    task.program = *left.program;
    for (const RuntimeKind runtime : runtimes_of(left.number)) {
      const Outcome outcome = worker.run(task.program, runtime);
      if (outcome.verdict == Verdict::fail) keep(task, runtime, outcome);
      if (outcome.verdict != Verdict::pass) return;
    }
  }

  void judge(const Task& task) {
    for (std::size_t i = 0; i < task.outcomes.size(); ++i) {
      const Outcome& outcome = task.outcomes[i];
      if (outcome.verdict == Verdict::fail) {
        keep(task, task.runtimes[i], outcome);
      } else {
        inputs_.learn({task.number, built_on_.front()}, task.program, outcome.states);
      }
    }
    counts_.add(task.program, task.runtimes, task.outcomes);
    built_on_.pop_front();
    if (elapsed() - saved_at_ >= kSavedEvery) save();
    if (record_.due(elapsed())) record_.progress(figures());
    show();
  }

  void keep(const Task& task, RuntimeKind runtime, const Outcome& outcome) {
    if (failures_.has(outcome)) return;
    save();  // to shrink it may take long
    const auto kept =
        failures_.keep(task.program, runtime, outcome,
                       "builtin, seed " + options_.seed.text + ", program " + std::to_string(task.number) +
                           ", " + fixed_text(elapsed(), 1) + " s");
    known_ += kept.known ? 1 : 0;
    progress_.end();
    if (kept.known) print_note("known since an earlier campaign, and left as it is: " + kept.failure.file);
    print_note(failure_text(kept.failure));
    record_.add(kept.failure, task.number, kept.known, figures());
  }

  std::string state_path() const { return options_.out + "/state"; }

  CampaignState state() const {
    CampaignState now;
    std::string runtimes, set;
    for (const RuntimeKind runtime : options_.runtimes) runtimes += " " + std::string(name_of(runtime));
    for (const auto& [name, value] : options_.set) set += " " + name + "=" + value;
    now.settings = {{"--seed", options_.seed.text},
                    {"--jobs", std::to_string(options_.jobs)},
                    {"--runtime", runtimes},
                    {"--fault", options_.fault ? fault_text(*options_.fault) : ""},
                    {"--set", set},
                    {"--runs 0", replays() ? "yes" : "no"},
                    {"programs of --corpus (hash)", std::to_string(inputs_.seeds_hash())}};
    now.seconds = elapsed();
    now.counts = counts_;
    now.kept = inputs_.kept_programs();
    now.states = inputs_.all_states();
    now.built_on.assign(built_on_.begin(), built_on_.end());
    now.built_on.insert(now.built_on.end(), resumed_.begin(), resumed_.end());
    now.kinds = failures_.kinds();
    now.known = known_;
    return now;
  }

  void save() {
    saved_at_ = elapsed();
    write_file(state_path(), print_state(state()));
  }

  void resume() {
    std::string problem;
    const std::optional<std::string> text = read_file(state_path(), kMostStateBytes, problem);
    if (!text) throw UsageError("--resume: " + state_path() + ": " + problem);
    try {
      const CampaignState before = parse_state(*text);
      require_same_settings(before, state());
      inputs_.restore(before.kept, before.states);
      seconds_before_ = before.seconds;
      counts_ = before.counts;
      resumed_.assign(before.built_on.begin(), before.built_on.end());
      failures_.restore(before.kinds);
      known_ = before.known;
    } catch (const UsageError& error) {
      throw UsageError(state_path() + ": " + error.what());
    }
  }

  int exit_code() const {
    if (counts_.programs == 0) return kExitInternal;
    return failures_.kinds().empty() ? kExitAsExpected : kExitUnexpected;
  }

  CampaignFigures figures() const {
    return {elapsed(), counts_, inputs_.states(), inputs_.kept(), failures_.kinds().size(), known_};
  }

  std::string progress_text() const {
    std::string line =
        with_commas(counts_.programs) + " programs, " + with_commas(counts_.of(Verdict::pass)) + " pass, " +
        with_commas(counts_.of(Verdict::refused)) + " refused, " + with_commas(counts_.of(Verdict::vacuous)) +
        " vacuous, " + with_commas(counts_.of(Verdict::fail)) + " failures";
    if (options_.keep_going) line += " of " + with_commas(failures_.kinds().size()) + " kinds";
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
            with_commas(number_of_legal_action_pairs()) + " action pairs, ";
    if (counts_.programs > 0) print_note(counts_.shapes_text());
    print_result(line + "seed " + options_.seed.text + ", " + fixed_text(elapsed(), 1) + " s)");
  }

  const CampaignOptions& options_;
  CampaignInputs inputs_;
  FailureStore failures_;
  WorkerPool pool_;
  CampaignRecord record_;
  std::optional<uint64_t> limit_;  // of programs
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double shown_at_ = 0.0;
  ProgressLine progress_;
  CampaignCounts counts_;
  double seconds_before_ = 0.0;  // of the campaign that is resumed
  double saved_at_ = 0.0;
  std::deque<std::size_t> built_on_;  // of the programs under way, how many kept ones they could build on
  std::deque<std::size_t> resumed_;   // the same, of those under way when the state was saved
  uint64_t known_ = 0;                // kinds that an earlier campaign stored
};

}  // namespace

int fuzz(const CampaignOptions& options) {
  if (options.runs == 0 && options.corpus.empty())
    throw UsageError("--runs 0 replays a corpus: expected --corpus DIR");
  return Campaign(options).run();
}

}  // namespace gatherfuzz
