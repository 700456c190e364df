#include "fuzz/campaign.h"

#include <chrono>
#include <memory>

#include "fuzz/campaign_counts.h"
#include "fuzz/campaign_inputs.h"
#include "fuzz/campaign_record.h"
#include "fuzz/campaign_state.h"
#include "fuzz/exit_code.h"
#include "fuzz/failure_block.h"
#include "fuzz/failure_store.h"
#include "fuzz/files.h"
#include "fuzz/libfuzzer_tasks.h"
#include "fuzz/output.h"
#include "fuzz/task_source.h"

namespace gatherfuzz {

namespace {

constexpr double kShownEvery = 5.0;      // seconds, where there is no terminal
constexpr double kRefreshedEvery = 0.1;  // on a terminal
constexpr double kSavedEvery = 1.0;
constexpr std::size_t kMostStateBytes = std::size_t{1} << 30;

class Campaign {
 public:
  explicit Campaign(const CampaignOptions& options)
      : options_(options), inputs_(options), failures_(options.out), record_(options) {
    if (options.runs) limit_ = *options.runs > 0 ? *options.runs : inputs_.seeds();
    require_writable("--out", options.out);
    Resumed resumed;
    if (options.resume) resumed = resume();
    source_ = make_task_source(
        options, inputs_, [this](uint64_t number) { return may_begin(number); }, resumed);
  }

  int run() {
    try {
      save();
      record_.begin(seconds_before_);
      run_left_programs();
      while (counts_.of(Verdict::fail) == 0 || options_.keep_going) {
        const std::optional<Task> task = source_->next();
        if (!task) break;
        judge(*task);
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

  bool replays() const { return options_.runs == 0; }

  bool may_begin(uint64_t number) const {
    return !(limit_ && number > *limit_) && elapsed() < options_.seconds;
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
    Worker worker(kMostProgramSeconds);
    Task task;
    task.number = left.number;
    task.program = *left.program;
    for (const RuntimeKind runtime : runtimes_of(options_, left.number)) {
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
        inputs_.learn({task.number, task.built_on}, task.program, outcome.states);
      }
    }
    counts_.add(task.program, task.runtimes, task.outcomes);
    if (elapsed() - saved_at_ >= kSavedEvery) save();
    if (record_.due(elapsed())) record_.progress(figures());
    show();
  }

  void keep(const Task& task, RuntimeKind runtime, const Outcome& outcome) {
    if (failures_.has(outcome)) return;
    save();  // to shrink it may take long
    const auto kept =
        failures_.keep(task.program, runtime, outcome,
                       std::string(name_of(options_.engine)) + ", seed " + options_.seed.text + ", program " +
                           std::to_string(task.number) + ", " + fixed_text(elapsed(), 1) + " s");
    known_ += kept.known ? 1 : 0;
    progress_.end();
    if (kept.known) print_note("known since an earlier campaign, and left as it is: " + kept.failure.file);
    print_note(failure_text(kept.failure));
    record_.add(kept.failure, task.number, kept.known, figures());
  }

  std::string state_path() const { return options_.out + "/state"; }

  // What a campaign that is resumed must have begun with.
  Settings settings() const {
    std::string runtimes, set;
    for (const RuntimeKind runtime : options_.runtimes) runtimes += " " + std::string(name_of(runtime));
    for (const auto& [name, value] : options_.set) set += " " + name + "=" + value;
    return {{"--engine", std::string(name_of(options_.engine))},
            {"--seed", options_.seed.text},
            {"--jobs", std::to_string(options_.jobs)},
            {"--runtime", runtimes},
            {"--fault", fault_text(options_)},
            {"--set", set},
            {"--runs 0", replays() ? "yes" : "no"},
            {"programs of --corpus (hash)", std::to_string(inputs_.seeds_hash())},
            {"GATHERFUZZ_WITHOUT", text_of(options_.without)}};
  }

  CampaignState state() const {
    CampaignState now;
    now.settings = settings();
    now.seconds = elapsed();
    now.counts = counts_;
    now.kept = inputs_.kept_programs();
    now.states = inputs_.all_states();
    now.built_on = source_->built_on_after(counts_.programs);
    now.kinds = failures_.kinds();
    now.known = known_;
    return now;
  }

  void save() {
    saved_at_ = elapsed();
    write_file(state_path(), print_state(state()));
  }

  Resumed resume() {
    std::string problem;
    const std::optional<std::string> text = read_file(state_path(), kMostStateBytes, problem);
    if (!text) throw UsageError("--resume: " + state_path() + ": " + problem);
    try {
      const CampaignState before = parse_state(*text);
      require_same_settings(before.settings, settings());
      inputs_.restore(before.kept, before.states);
      seconds_before_ = before.seconds;
      counts_ = before.counts;
      failures_.restore(before.kinds);
      known_ = before.known;
      return {before.counts.programs, before.built_on};
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
  std::unique_ptr<TaskSource> source_;
  CampaignRecord record_;
  std::optional<uint64_t> limit_;  // of programs
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double shown_at_ = 0.0;
  ProgressLine progress_;
  CampaignCounts counts_;
  double seconds_before_ = 0.0;  // of the campaign that is resumed
  double saved_at_ = 0.0;
  uint64_t known_ = 0;  // kinds that an earlier campaign stored
};

}  // namespace

int fuzz(const CampaignOptions& options) {
  if (options.runs == 0 && options.corpus.empty())
    throw UsageError("--runs 0 replays a corpus: expected --corpus DIR");
  if (options.engine == Engine::libfuzzer) {
    if (options.runs == 0)
      throw UsageError("--runs 0 replays a corpus, without an engine: expected no --engine libfuzzer");
    fuzz_target_of(options.runtimes.front());  // or it is refused before anything is written
  } else if (options.without.mutator) {
    throw UsageError("GATHERFUZZ_WITHOUT: mutator is a part of --engine libfuzzer only");
  }
  return Campaign(options).run();
}

}  // namespace gatherfuzz
