#include "impl/optimizer/distributed_optimizer.h"

#include "impl/kernels/fill.h"
#include "impl/kernels/grad_norm.h"
#include "impl/kernels/gradients.h"
#include "impl/kernels/main_params.h"
#include "impl/runtime/collective.h"

namespace gatherfuzz {

DistributedOptimizer::DistributedOptimizer(Runtime& runtime, Streams streams,
                                           const std::vector<BufferPair>& buffers, OptimizerOptions options)
    : runtime_(runtime), streams_(streams), options_(std::move(options)) {
  const auto ranks = static_cast<uint32_t>(runtime_.world_size());
  const auto rank = static_cast<uint32_t>(runtime_.rank());
  uint32_t total = 0;
  for (const BufferPair& pair : buffers) total += pair.layout.elements / ranks;
  // Zero, so that padding inside shards holds zeros.
  state_ =
      make_view<float>(runtime_.allocate("main params and moments", total * 12, Fill::zero), 0, total * 3);
  const View<float> grads =
      make_view<float>(runtime_.allocate("shard grads", total * 4, Fill::uninitialized), 0, total);
  uint32_t at = 0;
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    const BufferPair& pair = buffers[i];
    for (uint32_t b = 0; b < pair.layout.buckets.size(); ++b) {
      const uint32_t n = pair.layout.buckets[b].count() / ranks;
      const uint32_t first = pair.layout.buckets[b].begin + rank * n;
      const uint32_t tag = pair.first_bucket + b;
      Shard shard;
      shard.bucket = {i, b};
      shard.main = state_.slice(at, n).tagged(tag);
      shard.exp_avg = state_.slice(total + at, n).tagged(tag);
      shard.exp_avg_sq = state_.slice(2 * total + at, n).tagged(tag);
      shard.grads = grads.slice(at, n).tagged(tag);
      shard.reduced = pair.shard_grads(b, rank, ranks);
      shard.staging = pair.param_view(first, n).tagged(tag);
      shard.pieces = shard_pieces(pair.layout, b, rank, ranks);
      shards_.push_back(std::move(shard));
      at += n;
    }
  }
  norm_bins_ = make_view<uint64_t>(runtime_.allocate("norm bins", kNormBins * 8, Fill::zero), 0, kNormBins);
  const BufferId scalars = runtime_.allocate("optimizer scalars", 24, Fill::zero);
  norm_ = make_view<float>(scalars, 0, 1);
  clip_coefficient_ = make_view<float>(scalars, 4, 1);
  found_inf_ = make_view<float>(scalars, 8, 1);
  step_scalars_ = make_view<float>(scalars, 12, kAdamStepScalars);
  for (const Shard& shard : shards_) add_updates(shard);
  ready_ = runtime_.create_event();
  reduced_ = runtime_.create_event();
}

// One Adam for each run of pieces that are decayed alike. A run ends where the next one begins, so that
// padding is stepped too and stays zero.
void DistributedOptimizer::add_updates(const Shard& shard) {
  const auto decays = [&](const ShardPiece& piece) {
    return options_.weight_decay != 0.0 && options_.decayed[piece.param];
  };
  const auto update = [&](uint32_t first, uint32_t end, bool decayed) {
    Adam op;
    op.main = shard.main.slice(first, end - first);
    op.exp_avg = shard.exp_avg.slice(first, end - first);
    op.exp_avg_sq = shard.exp_avg_sq.slice(first, end - first);
    op.grads = shard.grads.slice(first, end - first);
    op.coefficient = clip_coefficient_;
    op.step_scalars = step_scalars_;
    op.constants = adam_constants(options_.beta1, options_.beta2, options_.eps);
    op.weight_decay.value = decayed ? static_cast<float>(options_.weight_decay) : 0.0f;
    updates_.push_back(op);
  };
  uint32_t first = 0;
  for (std::size_t p = 1; p < shard.pieces.size(); ++p) {
    if (decays(shard.pieces[p]) == decays(shard.pieces[p - 1])) continue;
    update(first, shard.pieces[p].in_shard, decays(shard.pieces[p - 1]));
    first = shard.pieces[p].in_shard;
  }
  update(first, shard.main.count(), !shard.pieces.empty() && decays(shard.pieces.back()));
}

void DistributedOptimizer::stage() {
  for (const Shard& shard : shards_)
    runtime_.launch(streams_.compute, CopyMainParams{shard.main, shard.staging});
}

bool DistributedOptimizer::step() {
  if (graph_ == 0 && may_capture()) capture();
  if (graph_ != 0) {
    begin_next_step();
    runtime_.launch_graph(streams_.compute, graph_);
  } else {
    if (!prepare_gradients()) return false;
    begin_next_step();
    update();
  }
  ++steps_since_reset_;
  return true;
}

bool DistributedOptimizer::may_capture() const {
  return options_.cuda_graph_warmup_steps && steps_since_reset_ >= *options_.cuda_graph_warmup_steps;
}

// What depends on the step's number stays outside, in memory that Adam reads.
void DistributedOptimizer::capture() {
  runtime_.begin_capture(streams_.compute);
  prepare_gradients();
  update();
  graph_ = runtime_.end_capture(streams_.compute);
}

// All up to Adam; false if the step must be skipped.
bool DistributedOptimizer::prepare_gradients() {
  for (const Shard& shard : shards_)
    runtime_.launch(streams_.compute, CopyReducedGradients{shard.reduced, shard.grads});
  if (options_.loss_scale && any_rank_found_nonfinite()) return false;
  compute_norm();
  return !(options_.grad_norm_skip_threshold && norm_is_over_threshold());
}

void DistributedOptimizer::update() {
  for (const Adam& adam : updates_) runtime_.launch(streams_.compute, adam);
}

void DistributedOptimizer::begin_next_step() {
  const double lr = learning_rate(options_.lr, options_.schedule, step_);
  ++step_;
  AdamStepScalars op = adam_step_scalars(lr, options_.beta1, options_.beta2, step_);
  op.target = step_scalars_;
  runtime_.launch(streams_.compute, op);
}

void DistributedOptimizer::drop_graph() {
  if (graph_ != 0) runtime_.destroy_graph(graph_);
  graph_ = 0;
}

void DistributedOptimizer::reset_graph() {
  drop_graph();
  steps_since_reset_ = 0;
}

bool DistributedOptimizer::any_rank_found_nonfinite() {
  runtime_.launch(streams_.compute, ZeroScalars{found_inf_});
  for (const Shard& shard : shards_) {
    UnscaleGradients op;
    op.grads = shard.grads;
    op.found_inf = found_inf_;
    op.factor.value = 1.0f / static_cast<float>(*options_.loss_scale);
    runtime_.launch(streams_.compute, op);
  }
  all_reduce(found_inf_, Reduction::max);
  return runtime_.read(streams_.compute, found_inf_).flagged();
}

void DistributedOptimizer::compute_norm() {
  runtime_.launch(streams_.compute, ZeroScalars{norm_bins_});
  for (const Shard& shard : shards_) runtime_.launch(streams_.compute, AddSquares{shard.grads, norm_bins_});
  all_reduce(norm_bins_, Reduction::sum);
  runtime_.launch(streams_.compute, FinishNorm{norm_bins_, norm_});
  runtime_.launch(streams_.compute,
                  ClipCoefficient{norm_, clip_coefficient_, {static_cast<float>(options_.clip_grad)}});
}

bool DistributedOptimizer::norm_is_over_threshold() {
  const HostScalar norm = runtime_.read(streams_.compute, norm_);
  return norm.nonfinite || norm.value > *options_.grad_norm_skip_threshold;
}

void DistributedOptimizer::all_reduce(const View<raw>& values, Reduction reduction) {
  if (runtime_.world_size() == 1) return;
  runtime_.record(ready_, streams_.compute);
  runtime_.wait(streams_.comm, ready_);
  AllReduce op;
  op.values = values;
  op.count = static_cast<int32_t>(values.count());
  op.reduction = reduction;
  runtime_.launch(streams_.comm, op);
  runtime_.record(reduced_, streams_.comm);
  runtime_.wait(streams_.compute, reduced_);
}

void DistributedOptimizer::save(OptimizerSnapshot& snapshot) {
  if (snapshot.state.buffer == 0)
    snapshot.state = make_view<float>(
        runtime_.allocate("saved optimizer state", state_.bytes, Fill::uninitialized), 0, state_.count());
  runtime_.launch(streams_.compute, CopyState{state_, snapshot.state});
  snapshot.step = step_;
}

void DistributedOptimizer::restore(const OptimizerSnapshot& snapshot) {
  runtime_.launch(streams_.compute, CopyState{snapshot.state, state_});
  step_ = snapshot.step;
}

}  // namespace gatherfuzz
