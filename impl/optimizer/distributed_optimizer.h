// Distributed Adam (ZeRO-1): each data-parallel rank owns one contiguous shard of each bucket, with FP32 main
// params and moments; it steps its shards and stages them in the param buffers for the gather.
#pragma once

#include <optional>
#include <vector>

#include "impl/kernels/adam.h"
#include "impl/optimizer/lr_schedule.h"
#include "impl/param_gather/buffers.h"
#include "impl/param_gather/param_gather.h"
#include "impl/runtime/collective.h"

namespace gatherfuzz {

struct OptimizerOptions {
  double lr = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double clip_grad = 1.0;  // 0: no clipping
  std::optional<double> loss_scale;
  double weight_decay = 0.0;
  std::vector<bool> decayed =
      {};  // by parameter: whether weight_decay applies to it; may be empty without one
  LrSchedule schedule = {};
  std::optional<double> grad_norm_skip_threshold = {};
  // Capture a step as a graph after so many eager ones, and replay it from then on. Needs neither loss_scale
  // nor grad_norm_skip_threshold, since both are answered on the host.
  std::optional<int> cuda_graph_warmup_steps = {};
};

// One rank's part of one bucket.
struct Shard {
  BucketRef bucket;
  View<float> main;  // these four are tagged with the bucket's number
  View<float> exp_avg;
  View<float> exp_avg_sq;
  View<float> grads;
  View<real> reduced;  // in the grad buffer
  View<real> staging;  // in the param buffer
  std::vector<ShardPiece> pieces;
};

// Main params, moments and step of one rank as they were at a save, in memory of that rank. Any optimizer
// whose shards are cut alike may take them over.
struct OptimizerSnapshot {
  View<float> state;  // allocated by the first save
  int step = 0;
};

class DistributedOptimizer {
 public:
  DistributedOptimizer(Runtime& runtime, Streams streams, const std::vector<BufferPair>& buffers,
                       OptimizerOptions options);

  const std::vector<Shard>& shards() const { return shards_; }
  View<float> norm() const { return norm_; }
  int steps() const { return step_; }
  // Main params and moments have been overwritten with those after so many steps.
  void set_steps(int steps) { step_ = steps; }

  // copy_main_params_to_param_buffer: rounds own shards of the main params into the param buffers of all
  // params.
  void stage();

  // Own shards of the reduced gradients to FP32, checks, norm, clip, Adam. True if the step was taken; false
  // if it was skipped, on every rank: with a loss scale some rank found a gradient that is not finite, or the
  // norm, which all ranks share, is over grad_norm_skip_threshold or not finite.
  bool step();

  // A graph freezes addresses: whoever moves memory that a step reads or writes drops it, and it is captured
  // anew by the next step. Reset: as after construction.
  void drop_graph();
  void reset_graph();
  GraphId graph() const { return graph_; }

  // State aside, and back: around a warmup, and for checkpoints in memory.
  void save(OptimizerSnapshot& snapshot);
  void restore(const OptimizerSnapshot& snapshot);

 private:
  void add_updates(const Shard& shard);
  bool may_capture() const;
  void capture();
  bool prepare_gradients();
  void update();
  void begin_next_step();
  bool any_rank_found_nonfinite();
  void compute_norm();
  bool norm_is_over_threshold();
  void all_reduce(const View<raw>& values, Reduction reduction);

  Runtime& runtime_;
  Streams streams_;
  OptimizerOptions options_;
  std::vector<Shard> shards_;
  std::vector<Adam> updates_;
  View<float> state_;  // main params and moments of all shards
  View<uint64_t> norm_bins_;
  View<float> norm_;
  View<float> clip_coefficient_;
  View<float> found_inf_;
  View<float> step_scalars_;
  EventId ready_ = 0;
  EventId reduced_ = 0;
  GraphId graph_ = 0;
  int steps_since_reset_ = 0;  // a warmup that is restored counts
  int step_ = 0;
};

}  // namespace gatherfuzz
