#include "fuzz/train.h"

#include <array>
#include <chrono>
#include <cmath>

#include "fuzz/exit_code.h"
#include "fuzz/files.h"
#include "fuzz/free_run.h"
#include "fuzz/interrupt.h"
#include "fuzz/output.h"
#include "fuzz/plot.h"
#include "fuzz/report.h"
#include "impl/training/checkpoint.h"

namespace gatherfuzz {

namespace {

constexpr std::size_t kLargestText = 256 * 1024 * 1024;
constexpr int kTokenValues = 256;
constexpr int kShownEvery = 20;          // steps, where there is no terminal
constexpr std::size_t kFinalSteps = 20;  // whose mean is the final loss

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<uint8_t> read_text(const std::string& path, int seq_length) {
  std::string problem;
  const std::optional<std::string> text = read_file(path, kLargestText, problem);
  if (!text) throw UsageError("--text " + path + ": " + problem);
  const auto least = static_cast<std::size_t>(seq_length) + 1;
  if (text->size() < least || text->size() > kLargestText) {
    throw UsageError("--text " + path + ": expected " + std::to_string(least) + " to " +
                     std::to_string(kLargestText) + " bytes, found " +
                     (text->size() > kLargestText ? "more" : std::to_string(text->size())));
  }
  return {text->begin(), text->end()};
}

// Of the distribution of single bytes, in nats: what a model reaches that knows nothing but their
// frequencies.
double unigram_entropy(const std::vector<uint8_t>& bytes) {
  std::array<uint64_t, kTokenValues> counts{};
  for (const uint8_t byte : bytes) ++counts[byte];
  double entropy = 0.0;
  for (const uint64_t count : counts) {
    const double p = static_cast<double>(count) / static_cast<double>(bytes.size());
    if (count > 0) entropy -= p * std::log(p);
  }
  return entropy;
}

// The losses so far, and what is shown of them.
class Curve {
 public:
  // `start`: what the run goes on from, or null.
  Curve(const TrainOptions& options, const Flags& flags, const Dataset& dataset, const TrainingState* start)
      : options_(options),
        first_step_(start != nullptr ? static_cast<int>(start->batch) : 0),
        tokens_per_step_(flags.data_parallel_size *
                         (start != nullptr ? start->microbatches : flags.num_microbatches) *
                         flags.micro_batch_size * flags.seq_length) {
    if (!options.reference) return;
    if (start != nullptr) {
      reference_.emplace(flags, dataset, *start);
    } else {
      reference_.emplace(flags, dataset);
    }
  }

  void add(const StepReport& report) {
    stop_if_interrupted();
    const double seconds = seconds_since(step_start_);
    losses_.push_back(report.loss);
    if (reference_) reference_losses_.push_back(reference_->step());
    const int step = first_step_ + report.step + 1;
    if (progress_.on_terminal() || step % kShownEvery == 0 || step == options_.steps)
      show(report, step, seconds);
    step_start_ = Clock::now();
  }

  double final_loss() const {
    const std::size_t n = std::min(losses_.size(), kFinalSteps);
    double sum = 0.0;
    for (std::size_t i = losses_.size() - n; i < losses_.size(); ++i) sum += static_cast<double>(losses_[i]);
    return n == 0 ? 0.0 : sum / static_cast<double>(n);
  }

  void end() {
    progress_.end();
    if (!options_.plot.empty())
      write_file(options_.plot,
                 loss_plot({"loss", losses_}, {"reference", reference_losses_}, first_step_ + 1));
    if (!options_.curve.empty()) write_file(options_.curve, csv());
  }

  // A line of its own.
  void note(const std::string& line) {
    progress_.end();
    print_note(line);
  }

 private:
  std::string csv() const {
    std::string csv = "step,loss,reference_loss\n";
    for (std::size_t i = 0; i < losses_.size(); ++i) {
      csv += std::to_string(first_step_ + static_cast<int>(i) + 1) + "," + fixed_text(losses_[i], 9) + "," +
             (i < reference_losses_.size() ? fixed_text(reference_losses_[i], 9) : "") + "\n";
    }
    return csv;
  }

  void show(const StepReport& report, int step, double seconds) {
    std::string line = "step " + std::to_string(step) + "/" + std::to_string(options_.steps) + "  loss " +
                       fixed_text(report.loss, 4);
    if (reference_) line += " (reference " + fixed_text(reference_losses_.back(), 4) + ")";
    line += "  grad norm " + fixed_text(report.norm, 4) + (report.taken ? "" : " (skipped)") + "  " +
            with_commas(static_cast<uint64_t>(tokens_per_step_ / seconds)) + " tokens/s";
    progress_.show(line);
  }

  const TrainOptions& options_;
  int first_step_;
  double tokens_per_step_;
  std::optional<FreeRun> reference_;
  std::vector<float> losses_, reference_losses_;
  Clock::time_point step_start_ = Clock::now();
  ProgressLine progress_;
};

std::optional<Checkpoint> read_start(const TrainOptions& options) {
  if (options.resume.empty()) return std::nullopt;
  Checked<Checkpoint> loaded = load_checkpoint(options.resume);
  if (value_of(loaded) == nullptr) throw UsageError("--resume: " + error_of(loaded).text);
  return std::get<Checkpoint>(std::move(loaded));
}

// With a checkpoint its flags hold where none are set, and the steps that are left.
Program train_program(const TrainOptions& options, const std::optional<Checkpoint>& start) {
  Program program;
  program.flags = start ? start->flags : train_defaults();
  apply_settings(program.flags, options.set);
  if (program.flags.vocab_size < kTokenValues)
    throw UsageError("expected a vocab_size of at least 256, one for each byte, found " +
                     std::to_string(program.flags.vocab_size));
  Action action;
  action.kind = ActionKind::train;
  const int done = start ? static_cast<int>(start->state.batch) : 0;
  action.count = options.steps - done;
  if (action.count < 1)
    throw UsageError("--resume: expected --steps of more than the " + std::to_string(done) +
                     " that the checkpoint has, found " + std::to_string(options.steps));
  program.actions.push_back(action);
  if (const std::optional<Refusal> refusal = refusal_before_run(program))
    throw UsageError("refused: " + refusal->text);
  if (!start) return program;
  const auto same = check_same_model(start->flags, program.flags);
  if (value_of(same) == nullptr) throw UsageError("--resume " + options.resume + ": " + error_of(same).text);
  return program;
}

}  // namespace

Flags train_defaults() {
  Flags flags;
  flags.fp8_recipe = Recipe::mxfp8;
  flags.fp8_param_gather = true;
  flags.reuse_grad_buf_for_mxfp8_param_ag = true;
  flags.overlap_param_gather = true;
  flags.overlap_grad_reduce = true;
  flags.cuda_graph_impl = CudaGraphImpl::local;
  flags.cuda_graph_scope = CudaGraphScope::full_iteration;
  flags.data_parallel_size = 4;
  flags.seq_length = 64;
  flags.micro_batch_size = 4;
  flags.vocab_size = kTokenValues;
  flags.lr = 0.003;
  return flags;
}

int train(const TrainOptions& options) {
  if (options.checkpoint_every > 0 && options.checkpoint.empty())
    throw UsageError("--checkpoint-every: expected --checkpoint DIR too");
  const std::optional<Checkpoint> start = read_start(options);
  const Program program = train_program(options, start);
  const std::vector<uint8_t> bytes = read_text(options.text, program.flags.seq_length);
  const Dataset dataset = Dataset::text(bytes, program.flags.seed);
  if (!options.checkpoint.empty()) require_writable("--checkpoint", options.checkpoint);
  if (!options.curve.empty()) require_writable_file("--curve", options.curve);
  if (!options.plot.empty()) require_writable_file("--plot", options.plot);
  Curve curve(options, program.flags, dataset, start ? &start->state : nullptr);
  RunOptions run;
  run.runtime = RuntimeKind::host;
  run.twin = false;
  if (!options.checks) run.judging = Judging::none;
  run.dataset = &dataset;
  run.op_budget = UINT64_MAX;
  run.on_step = [&curve](const StepReport& report) { curve.add(report); };
  if (start) run.start = &start->state;
  run.state_every = options.checkpoint_every;
  if (!options.checkpoint.empty()) {
    run.on_state = [&](const TrainingState& state) {
      curve.note("checkpoint " + save_checkpoint(options.checkpoint, {program.flags, state}));
    };
  }

  Judgement j{options.text, RuntimeKind::host, {}, "pass", true, 0};
  try {
    j.outcome = run_program(program, run);
  } catch (...) {  // Ctrl-C, or a checkpoint that cannot be written
    curve.end();
    throw;
  }
  curve.end();
  j.as_expected = j.outcome.verdict == Verdict::pass;
  if (!j.as_expected) print_note(outcome_line(j) + "\n" + explanation(j));
  print_result("final loss " + fixed_text(curve.final_loss(), 4) + " nats, unigram " +
               fixed_text(unigram_entropy(bytes), 4) + " nats, worst share of bound " +
               (options.checks ? short_text(j.outcome.worst_share) : "unchecked"));
  return j.as_expected ? kExitAsExpected : kExitUnexpected;
}

}  // namespace gatherfuzz
