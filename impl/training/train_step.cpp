#include "impl/training/train_step.h"

#include <limits>
#include <utility>

#include "impl/kernels/fill.h"
#include "impl/kernels/gradients.h"
#include "impl/kernels/load_batch.h"
#include "impl/runtime/collective.h"

namespace gatherfuzz {

TrainStep::TrainStep(Runtime& runtime, const Flags& flags, const Dataset& dataset, bool coarse,
                     const TrainStep* like)
    : runtime_(runtime),
      flags_(flags),
      dataset_(dataset),
      parts_(runtime, flags, coarse, like != nullptr ? &like->parts_ : nullptr),
      microbatches_(flags.num_microbatches) {
  reduced_loss_ = make_view<float>(runtime.allocate("reduced loss", 4, Fill::zero), 0, 1);
  loss_ready_ = runtime.create_event();
  loss_reduced_ = runtime.create_event();
  initialize_main_params(runtime, flags, parts_);
  zero_grad_buffer();
  copy_main_params_to_param_buffer();
  force_param_sync();
}

void TrainStep::zero_grad_buffer() {
  parts_.grad_sync->zero_grad_buffer();
}

void TrainStep::copy_main_params_to_param_buffer() {
  parts_.optimizer->stage();
  parts_.gather->clear_dispatched();
}

void TrainStep::force_param_sync() {
  parts_.gather->force_param_sync();
  weights_current_ = true;
}

bool TrainStep::capture_due() const {
  return captures_full_iteration(flags_) && calls_ >= flags_.cuda_graph_warmup_steps;
}

bool TrainStep::may_capture() const {
  return capture_due() && (hooks_enabled() || !flags_.overlap_param_gather);
}

bool TrainStep::next_work_gathers() const {
  if (!flags_.overlap_param_gather) return false;
  return graph_ != 0 ? graph_gathers_ : hooks_enabled();
}

void TrainStep::forward_backward() {
  const bool gathers = next_work_gathers();
  load_batch();
  if (graph_ == 0 && may_capture()) capture();
  if (graph_ != 0) {
    runtime_.launch_graph(parts_.streams.compute, graph_);
    // A replay runs no host code: what the captured work leaves behind on the host is applied here.
    if (graph_gathers_) parts_.gather->mark_all_finished();
    parts_.grad_sync->mark_all_finished();
    ++counts_.replays;
  } else {
    run_work();
    ++counts_.eager;
  }
  ++calls_;
  if (gathers) weights_current_ = true;
}

void TrainStep::capture() {
  graph_gathers_ = next_work_gathers();
  runtime_.begin_capture(parts_.streams.compute);
  run_work();
  parts_.grad_sync->finish_grad_sync();
  graph_ = runtime_.end_capture(parts_.streams.compute);
  ++counts_.captures;
}

void TrainStep::run_work() {
  const StreamId compute = parts_.streams.compute;
  const Model& model = *parts_.model;
  const bool per_token = flags_.calculate_per_token_loss;
  const auto coefficient =
      static_cast<float>(flags_.loss_scale.value_or(1.0) / (per_token ? 1 : microbatches_));
  if (per_token) parts_.grad_sync->clear_token_count();
  for (int slot = 0; slot < microbatches_; ++slot) {
    for (int module = 0; module < model.modules(); ++module) {
      parts_.gather->forward_pre_hook(model.params_of(module));
      parts_.passes->forward(runtime_, compute, module, slot);
    }
    if (per_token) parts_.grad_sync->count_tokens(model.targets(slot));
    for (int module = model.modules(); module-- > 0;) {
      parts_.passes->backward(runtime_, compute, module, slot, coefficient);
      if (slot + 1 < microbatches_) continue;
      for (const int param : model.params_of(module)) parts_.grad_sync->grad_ready(param);
    }
  }
}

// The copy of the batch into static inputs stays outside of a graph.
void TrainStep::load_batch() {
  const Model& model = *parts_.model;
  for (int slot = 0; slot < microbatches_; ++slot) {
    LoadBatch op;
    op.tokens = model.tokens(slot);
    op.targets = model.targets(slot);
    op.dataset = &dataset_;
    op.rank = runtime_.rank();
    op.microbatch = slot;
    op.batch = static_cast<int32_t>(batch_);
    op.seq_length = flags_.seq_length;
    runtime_.launch(parts_.streams.compute, op);
  }
  const float value = injection_ == Injection::grad ? std::numeric_limits<float>::infinity() : 0.0f;
  runtime_.launch(parts_.streams.compute, SetScalar{model.injection(), value});
  ++batch_;
}

void TrainStep::finish_grad_sync() {
  parts_.grad_sync->finish_grad_sync();
  average_loss();
  if (injection_ == Injection::shard)
    runtime_.launch(parts_.streams.compute,
                    PoisonShard{parts_.optimizer->shards().front().reduced.slice(0, 1)});
  injection_ = Injection::none;
}

void TrainStep::average_loss() {
  View<float> losses = parts_.model->loss(0);
  losses.bytes = static_cast<uint32_t>(microbatches_) * 4;
  AverageLoss op;
  op.losses = losses;
  op.out = reduced_loss_;
  op.factor.value = 1.0f / static_cast<float>(microbatches_ * runtime_.world_size());
  op.tokens = parts_.grad_sync->token_count();
  runtime_.launch(parts_.streams.compute, op);
  if (runtime_.world_size() == 1) return;
  runtime_.record(loss_ready_, parts_.streams.compute);
  runtime_.wait(parts_.streams.comm, loss_ready_);
  AllReduce sum;
  sum.values = View<raw>(reduced_loss_);
  sum.count = 1;
  runtime_.launch(parts_.streams.comm, sum);
  runtime_.record(loss_reduced_, parts_.streams.comm);
  runtime_.wait(parts_.streams.compute, loss_reduced_);
}

bool TrainStep::optimizer_step() {
  if (!parts_.optimizer->step()) return false;
  weights_current_ = false;
  if (!flags_.overlap_param_gather) {
    copy_main_params_to_param_buffer();
    force_param_sync();
  }
  return true;
}

void TrainStep::forward_evaluation(uint32_t index) {
  const Model& model = *parts_.model;
  LoadBatch op;
  op.tokens = model.tokens(model.evaluation_slot());
  op.targets = model.targets(model.evaluation_slot());
  op.dataset = &dataset_;
  op.rank = runtime_.rank();
  op.microbatch = 0;
  op.batch = evaluation_batch(static_cast<int32_t>(index));
  op.seq_length = flags_.seq_length;
  runtime_.launch(parts_.streams.compute, op);
  for (int module = 0; module < model.modules(); ++module) {
    parts_.gather->forward_pre_hook(model.params_of(module));
    parts_.passes->forward(runtime_, parts_.streams.compute, module, model.evaluation_slot());
  }
}

void TrainStep::set_microbatches(int microbatches) {
  if (microbatches == microbatches_) return;
  microbatches_ = microbatches;
  drop_graph();
}

void TrainStep::drop_graph() {
  if (graph_ != 0) runtime_.destroy_graph(graph_);
  graph_ = 0;
}

void TrainStep::reset_graph() {
  drop_graph();
  parts_.optimizer->reset_graph();
  calls_ = 0;
}

void TrainStep::rerun_forward_backward() {
  --batch_;
  const Injection pending = std::exchange(injection_, Injection::none);
  forward_backward();
  finish_grad_sync();
  injection_ = pending;
}

void TrainStep::check_weight_hashes() {
  if (!weight_hashes_) weight_hashes_.emplace(runtime_, parts_);
  weight_hashes_->check();
}

void TrainStep::offload_grad_buffers() {
  runtime_.synchronize_stream(parts_.streams.compute);
  runtime_.synchronize_stream(parts_.streams.comm);
  for (const BufferPair& pair : parts_.buffers) runtime_.release(pair.grads);
}

void TrainStep::restore_grad_buffers() {
  for (const BufferPair& pair : parts_.buffers) runtime_.allocate_again(pair.grads, Fill::zero);
  drop_graph();
  parts_.optimizer->drop_graph();
}

void TrainStep::save_state(TrainSnapshot& snapshot) {
  parts_.optimizer->save(snapshot.optimizer);
  snapshot.batch = batch_;
  snapshot.microbatches = microbatches_;
}

void TrainStep::restore_state(const TrainSnapshot& snapshot) {
  parts_.optimizer->restore(snapshot.optimizer);
  batch_ = snapshot.batch;
  set_microbatches(snapshot.microbatches);
  weights_current_ = false;
}

void TrainStep::copy_state_to_host(TrainingState& state) {
  if (state.params.empty()) state.params = make_param_states(parts_.params);
  copy_shards_to_host(runtime_, parts_, state.params);
  state.step = parts_.optimizer->steps();
  state.batch = batch_;
  state.microbatches = microbatches_;
}

void TrainStep::copy_state_from_host(const TrainingState& state) {
  copy_shards_from_host(runtime_, parts_, state.params);
  parts_.optimizer->set_steps(state.step);
  batch_ = state.batch;
  set_microbatches(state.microbatches);
  weights_current_ = false;
}

}  // namespace gatherfuzz
