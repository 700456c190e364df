#include "fuzz/train.h"

#include <array>
#include <chrono>
#include <cmath>

#include "fuzz/exit_code.h"
#include "fuzz/files.h"
#include "fuzz/free_run.h"
#include "fuzz/interrupt.h"
#include "fuzz/output.h"
#include "fuzz/report.h"

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
  Curve(const TrainOptions& options, const Flags& flags, const Dataset& dataset)
      : options_(options),
        tokens_per_step_(flags.data_parallel_size * flags.num_microbatches * flags.micro_batch_size *
                         flags.seq_length) {
    if (options.reference) reference_.emplace(flags, dataset);
  }

  void add(const StepReport& report) {
    stop_if_interrupted();
    const double seconds = seconds_since(step_start_);
    losses_.push_back(report.loss);
    if (reference_) reference_losses_.push_back(reference_->step());
    if (progress_.on_terminal() || (report.step + 1) % kShownEvery == 0 || report.step + 1 == options_.steps)
      show(report, seconds);
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
    if (options_.curve.empty()) return;
    std::string csv = "step,loss,reference_loss\n";
    for (std::size_t i = 0; i < losses_.size(); ++i) {
      csv += std::to_string(i + 1) + "," + fixed_text(losses_[i], 9) + "," +
             (i < reference_losses_.size() ? fixed_text(reference_losses_[i], 9) : "") + "\n";
    }
    write_file(options_.curve, csv);
  }

 private:
  void show(const StepReport& report, double seconds) {
    std::string line = "step " + std::to_string(report.step + 1) + "/" + std::to_string(options_.steps) +
                       "  loss " + fixed_text(report.loss, 4);
    if (reference_) line += " (reference " + fixed_text(reference_losses_.back(), 4) + ")";
    line += "  grad norm " + fixed_text(report.norm, 4) + (report.taken ? "" : " (skipped)") + "  " +
            with_commas(static_cast<uint64_t>(tokens_per_step_ / seconds)) + " tokens/s";
    progress_.show(line);
  }

  const TrainOptions& options_;
  double tokens_per_step_;
  std::optional<FreeRun> reference_;
  std::vector<float> losses_, reference_losses_;
  Clock::time_point step_start_ = Clock::now();
  ProgressLine progress_;
};

Program train_program(const TrainOptions& options) {
  Program program;
  program.flags = train_defaults();
  apply_settings(program.flags, options.set);
  if (program.flags.vocab_size < kTokenValues)
    throw UsageError("expected a vocab_size of at least 256, one for each byte, found " +
                     std::to_string(program.flags.vocab_size));
  Action action;
  action.kind = ActionKind::train;
  action.count = options.steps;
  program.actions.push_back(action);
  if (const std::optional<Refusal> refusal = refusal_before_run(program))
    throw UsageError("refused: " + refusal->text);
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
  const Program program = train_program(options);
  const std::vector<uint8_t> bytes = read_text(options.text, program.flags.seq_length);
  const Dataset dataset = Dataset::text(bytes, program.flags.seed);
  Curve curve(options, program.flags, dataset);
  RunOptions run;
  run.runtime = RuntimeKind::host;
  run.twin = false;
  if (!options.checks) run.judging = Judging::none;
  run.dataset = &dataset;
  run.op_budget = UINT64_MAX;
  run.on_step = [&curve](const StepReport& report) { curve.add(report); };

  Judgement j{options.text, RuntimeKind::host, {}, "pass", true, 0};
  try {
    j.outcome = run_program(program, run);
  } catch (const Interrupted&) {
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
