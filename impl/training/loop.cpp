#include "impl/training/loop.h"

namespace gatherfuzz {

bool TrainingLoop::train_step() {
  step_.zero_grad_buffer();
  if (step_.next_work_gathers()) step_.copy_main_params_to_param_buffer();
  step_.forward_backward();
  step_.finish_grad_sync();
  const bool taken = step_.optimizer_step();
  if (taken) step_.enable_forward_pre_hook();
  return taken;
}

// Zero, stage, forced sync: the only order that leaves clean gradient memory and current weights.
void TrainingLoop::sync_weights() {
  step_.zero_grad_buffer();
  step_.copy_main_params_to_param_buffer();
  step_.force_param_sync();
}

void TrainingLoop::begin_warmup() {
  step_.enable_forward_pre_hook();
  step_.save_state(before_warmup_);
}

void TrainingLoop::end_warmup() {
  step_.restore_state(before_warmup_);
  sync_weights();
}

void TrainingLoop::save_checkpoint(const std::string& name) {
  sync_weights();
  LoopSnapshot& snapshot = snapshots_[name];
  step_.save_state(snapshot.training);
  snapshot.evaluations = evaluations_;
}

void TrainingLoop::load_checkpoint(const std::string& name) {
  const LoopSnapshot& snapshot = snapshots_.at(name);
  step_.restore_state(snapshot.training);
  evaluations_ = snapshot.evaluations;
  sync_weights();
}

void TrainingLoop::copy_state_to_host(TrainingState& state) {
  step_.copy_state_to_host(state);
  state.evaluations = evaluations_;
}

void TrainingLoop::resume(const TrainingState& state) {
  step_.copy_state_from_host(state);
  evaluations_ = state.evaluations;
  sync_weights();
}

void TrainingLoop::start_loop(bool hooks_on) {
  if (!step_.weights_current()) sync_weights();
  if (hooks_on) {
    step_.enable_forward_pre_hook();
  } else {
    step_.disable_forward_pre_hook();
  }
}

void TrainingLoop::end_loop(bool keep_graph) {
  sync_weights();
  step_.disable_forward_pre_hook();
  if (!keep_graph) step_.reset_graph();
}

template <class Work>
void TrainingLoop::with_weights_and_without_hooks(Work&& work) {
  const bool hooks = step_.hooks_enabled();
  step_.zero_grad_buffer();
  step_.copy_main_params_to_param_buffer();
  step_.disable_forward_pre_hook();
  step_.force_param_sync();
  work();
  if (hooks) step_.enable_forward_pre_hook();
}

void TrainingLoop::evaluate(int passes) {
  with_weights_and_without_hooks([&] {
    for (int i = 0; i < passes; ++i) step_.forward_evaluation(evaluations_++);
  });
}

void TrainingLoop::check_weight_hashes() {
  with_weights_and_without_hooks([&] { step_.check_weight_hashes(); });
}

void TrainingLoop::rerun_forward_backward() {
  step_.zero_grad_buffer();
  if (step_.next_work_gathers()) step_.copy_main_params_to_param_buffer();
  step_.rerun_forward_backward();
}

}  // namespace gatherfuzz
