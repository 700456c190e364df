// One rank's training step, as the raw actions of which every loop is made. Host state that decides what is
// launched: whether the forward pre-hooks are on, whether a full-iteration graph exists and what it holds,
// how often forward_backward was called, the position in the data.
#pragma once

#include <memory>
#include <optional>

#include "impl/kernels/dataset.h"
#include "impl/training/assembly.h"
#include "impl/training/training_state.h"
#include "impl/training/weight_hashes.h"

namespace gatherfuzz {

// Where an injected infinity enters the next iteration of this rank.
enum class Injection : uint8_t { none, grad, shard };

// What a rank's host code did, for those who ask whether anything happened.
struct StepCounts {
  int captures = 0;
  int replays = 0;
  int eager = 0;  // runs of forward and backward outside of a graph
};

// Where a rank's training stood at a save: optimizer state and data position, nothing of hooks and graphs.
struct TrainSnapshot {
  OptimizerSnapshot optimizer;
  uint32_t batch = 0;
  int microbatches = 1;
};

class TrainStep {
 public:
  // A fresh model: weights quantized from the main params, hooks on, no graph. `dataset` must outlive it, and
  // so must `like`: another rank's, or null, whose recorded passes are shared.
  TrainStep(Runtime& runtime, const Flags& flags, const Dataset& dataset, bool coarse,
            const TrainStep* like = nullptr);

  void zero_grad_buffer();
  void copy_main_params_to_param_buffer();
  void enable_forward_pre_hook() { parts_.gather->enable_forward_pre_hook(); }
  void disable_forward_pre_hook() { parts_.gather->disable_forward_pre_hook(); }
  bool hooks_enabled() const { return parts_.gather->hooks_enabled(); }
  void force_param_sync();
  // All microbatches of the next batch: eager, captured and replayed, or replayed.
  void forward_backward();
  void finish_grad_sync();
  // False if the step was skipped. Without overlapped gather a taken step ends with staging and a synchronous
  // gather.
  bool optimizer_step();
  // A forward pass over an evaluation batch.
  void forward_evaluation(uint32_t index);

  // Throws WeightsDiffer.
  void check_weight_hashes();
  // Gives the grad memory back, with the params that share it. Until it is restored nothing that uses it may
  // be called.
  void offload_grad_buffers();
  // Zeros, at another address: graphs are dropped, and captured anew when they may be.
  void restore_grad_buffers();

  // Whether the work that forward_backward would run next contains the all-gather: it must then be staged
  // before.
  bool next_work_gathers() const;
  // Whether the weights hold the current main params.
  bool weights_current() const { return weights_current_; }

  void inject(Injection injection) { injection_ = injection; }
  Injection pending_injection() const { return injection_; }
  void skip_batch() { ++batch_; }
  // The last batch comes once more; an injection waits for the iteration after it.
  void rerun_forward_backward();
  int microbatches() const { return microbatches_; }
  // A graph captured for another number of microbatches is dropped, and captured anew when it may be.
  void set_microbatches(int microbatches);
  void reset_graph();

  // State aside, and back; weights are then not current. The snapshot may be that of another TrainStep of
  // this rank with the same flags.
  void save_state(TrainSnapshot& snapshot);
  void restore_state(const TrainSnapshot& snapshot);
  // This rank's part of the state into one that all ranks share, or out of it; weights are then not current.
  void copy_state_to_host(TrainingState& state);
  void copy_state_from_host(const TrainingState& state);

  uint32_t batch() const { return batch_; }
  View<float> reduced_loss() const { return reduced_loss_; }
  const StepCounts& counts() const { return counts_; }
  const Assembly& parts() const { return parts_; }
  GraphId graph() const { return graph_; }
  bool graph_gathers() const { return graph_gathers_; }
  // Whether the next work is due to be captured and may not be: hooks are off and the gather overlaps.
  bool capture_postponed() const { return graph_ == 0 && capture_due() && !may_capture(); }
  const Flags& flags() const { return flags_; }

 private:
  bool capture_due() const;
  bool may_capture() const;
  void capture();
  void run_work();
  void load_batch();
  void average_loss();
  void drop_graph();

  Runtime& runtime_;
  Flags flags_;
  const Dataset& dataset_;
  Assembly parts_;
  int microbatches_;
  uint32_t batch_ = 0;
  int calls_ = 0;  // of forward_backward since the graph was reset
  GraphId graph_ = 0;
  bool graph_gathers_ = false;
  bool weights_current_ = false;
  Injection injection_ = Injection::none;
  std::optional<WeightHashes> weight_hashes_;  // made when first asked for
  View<float> reduced_loss_;
  EventId loss_ready_ = 0;
  EventId loss_reduced_ = 0;
  StepCounts counts_;
};

}  // namespace gatherfuzz
