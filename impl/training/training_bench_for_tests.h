// A training run on local ranks, for the tests of step and loop: small flags, a log of what is executed, and
// views on what a run leaves.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "impl/param_gather/gather_bench_for_tests.h"
#include "impl/runtime/local/world_for_tests.h"
#include "impl/training/loop.h"

namespace gatherfuzz {

// MXFP8 with all that the design's iteration has: reuse, overlap, two ranks, two buckets a buffer, loss
// scale.
inline Flags small_flags() {
  Flags flags;
  flags.fp8_recipe = Recipe::mxfp8;
  flags.fp8_param_gather = true;
  flags.reuse_grad_buf_for_mxfp8_param_ag = true;
  flags.overlap_param_gather = true;
  flags.overlap_grad_reduce = true;
  flags.num_buckets = 2;
  flags.data_parallel_size = 2;
  flags.loss_scale = 16.0;
  flags.num_layers = 1;
  flags.hidden_size = 32;
  flags.ffn_hidden_size = 32;
  flags.num_attention_heads = 2;
  flags.vocab_size = 32;
  flags.seq_length = 32;
  flags.seed = 5;
  flags.lr = 0.01;
  return flags;
}
inline Flags with_graph(Flags flags, int warmup_steps) {
  flags.cuda_graph_impl = CudaGraphImpl::full_iteration;
  flags.cuda_graph_warmup_steps = warmup_steps;
  return flags;
}
inline Flags without_overlap(Flags flags) {
  flags.overlap_param_gather = false;
  return flags;
}

class TrainingBench {
 public:
  explicit TrainingBench(const Flags& flags, MemoryKind memory = MemoryKind::symbolic)
      : world(options(flags, memory)),
        dataset_(Dataset::synthetic(flags.vocab_size, flags.seed)),
        ranks_(static_cast<std::size_t>(flags.data_parallel_size)) {
    EXPECT_TRUE(validate(flags).empty());
    world.run([&](Runtime& runtime) {
      Rank& rank = ranks_[static_cast<std::size_t>(runtime.rank())];
      rank.step = std::make_unique<TrainStep>(runtime, flags, dataset_, memory == MemoryKind::symbolic);
      rank.loop = std::make_unique<TrainingLoop>(*rank.step);
    });
    world.set_observer(&log);
  }

  // Runs host code on every rank; the log then holds what it executed.
  void run(const std::function<void(TrainStep&)>& body) {
    log.entries.clear();
    world.run([&](Runtime& runtime) { body(*ranks_[static_cast<std::size_t>(runtime.rank())].step); });
  }
  void loop(const std::function<void(TrainingLoop&)>& body) {
    log.entries.clear();
    world.run([&](Runtime& runtime) { body(*ranks_[static_cast<std::size_t>(runtime.rank())].loop); });
  }
  // Whether the step was taken, on which all ranks must agree.
  bool train() {
    std::vector<int> taken(ranks_.size());
    log.entries.clear();
    world.run([&](Runtime& runtime) {
      const auto rank = static_cast<std::size_t>(runtime.rank());
      taken[rank] = ranks_[rank].loop->train_step() ? 1 : 0;
    });
    for (const int t : taken) EXPECT_EQ(t, taken[0]);
    return taken[0] == 1;
  }
  void train(int steps) {
    for (int i = 0; i < steps; ++i) EXPECT_TRUE(train());
  }
  // In the next iteration of one rank.
  void inject(std::size_t rank, Injection injection) {
    run([&](TrainStep& step) {
      if (&step == ranks_[rank].step.get()) step.inject(injection);
    });
  }
  const TrainStep& step(std::size_t rank = 0) const { return *ranks_[rank].step; }

  // Main params, moments and step of every rank.
  std::vector<uint64_t> optimizer_state() {
    std::vector<uint64_t> state;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const DistributedOptimizer& optimizer = *step(r).parts().optimizer;
      state.push_back(static_cast<uint64_t>(optimizer.steps()));
      for (const Shard& shard : optimizer.shards())
        for (const View<float>& view : {shard.main, shard.exp_avg, shard.exp_avg_sq}) append(state, r, view);
    }
    return state;
  }
  // What forward and backward read, on every rank.
  std::vector<uint64_t> weights() {
    std::vector<uint64_t> all;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const Assembly& parts = step(r).parts();
      for (const BufferPair& pair : parts.buffers) {
        for (const ParamSlot& slot : pair.layout.slots) {
          const QuantizedWeight& w = parts.weights[slot.param];
          if (!pair.mxfp8) append(all, r, pair.param_view(slot.begin, slot.count));
          if (pair.mxfp8)
            for (const Operand& plane : {Operand(w.rowwise), Operand(w.rowwise_scale), Operand(w.columnwise),
                                         Operand(w.columnwise_scale)})
              append(all, r, plane);
        }
      }
    }
    return all;
  }
  // Whether the weights are those of the main params: deriving them anew changes nothing. It leaves clean
  // memory.
  bool weights_follow_main_params() {
    const std::vector<uint64_t> before = weights();
    run([](TrainStep& step) {
      step.zero_grad_buffer();
      step.copy_main_params_to_param_buffer();
      step.force_param_sync();
    });
    EXPECT_GT(before.size(), 20u);
    return weights() == before;
  }

  OpLog log;
  World world;

 private:
  struct Rank {
    std::unique_ptr<TrainStep> step;
    std::unique_ptr<TrainingLoop> loop;
  };

  static WorldOptions options(const Flags& flags, MemoryKind memory) {
    WorldOptions result;
    result.ranks = flags.data_parallel_size;
    result.memory = memory;
    return result;
  }
  void append(std::vector<uint64_t>& list, std::size_t rank, const Operand& view) {
    const std::vector<uint64_t> more = contents(world, static_cast<int>(rank), view);
    list.insert(list.end(), more.begin(), more.end());
  }

  Dataset dataset_;
  std::vector<Rank> ranks_;
};

// Positions in rank 0's log; the size of the log if there is none.
inline std::size_t first_of(const TrainingBench& bench, const std::string& name) {
  const std::vector<std::string> names = bench.log.of(0);
  return static_cast<std::size_t>(
      std::find_if(names.begin(), names.end(), [&](const std::string& n) { return n.starts_with(name); }) -
      names.begin());
}
inline std::size_t last_of(const TrainingBench& bench, const std::string& name) {
  const std::vector<std::string> names = bench.log.of(0);
  std::size_t last = names.size();
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i].starts_with(name)) last = i;
  return last;
}

}  // namespace gatherfuzz
