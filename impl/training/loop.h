// The training loop: the actions of a program, each made of raw actions, with the hook phases of a real loop.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "impl/training/train_step.h"

namespace gatherfuzz {

// Checkpoints in memory, by name.
struct LoopSnapshot {
  TrainSnapshot training;
  uint32_t evaluations = 0;
};
using LoopSnapshots = std::map<std::string, LoopSnapshot, std::less<>>;

class TrainingLoop {
 public:
  // `snapshots`: those of another loop of this rank, which this one may load.
  explicit TrainingLoop(TrainStep& step, LoopSnapshots snapshots = {})
      : step_(step), snapshots_(std::move(snapshots)) {}

  // One iteration: zero; stage if and only if the work about to run gathers; forward and backward; finish;
  // optimizer; hooks on after a step that was not skipped. True if the step was taken.
  bool train_step();

  // Before the training steps of a warmup, and after them: state is restored and the weights re-derived.
  void begin_warmup();
  void end_warmup();

  // The state under a name, in place of an older one; weights are gathered, and hooks stay.
  void save_checkpoint(const std::string& name);
  // A state that was saved: never hooks, graphs and their counters.
  void load_checkpoint(const std::string& name);
  const LoopSnapshots& snapshots() const { return snapshots_; }

  // The state of all ranks, of which this one fills in its part; and a fresh model that goes on from one.
  void copy_state_to_host(TrainingState& state);
  void resume(const TrainingState& state);

  void start_loop(bool hooks_on);
  void end_loop(bool keep_graph);
  void evaluate(int passes);
  // Throws WeightsDiffer.
  void check_weight_hashes();
  // The last batch again, without an update.
  void rerun_forward_backward();
  void offload_grad_buffers() { step_.offload_grad_buffers(); }
  void restore_grad_buffers() { step_.restore_grad_buffers(); }

 private:
  void sync_weights();
  template <class Work>
  void with_weights_and_without_hooks(Work&& work);

  TrainStep& step_;
  TrainSnapshot before_warmup_;
  LoopSnapshots snapshots_;
  uint32_t evaluations_ = 0;
};

}  // namespace gatherfuzz
