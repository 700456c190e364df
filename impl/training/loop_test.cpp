// The training loop: when it stages, its hook phases, warmup, evaluation, and counts over drawn actions.
#include "impl/training/loop.h"

#include <gtest/gtest.h>

#include <random>

#include "impl/kernels/adam.h"
#include "impl/kernels/load_batch.h"
#include "impl/kernels/main_params.h"
#include "impl/training/training_bench_for_tests.h"

namespace gatherfuzz {
namespace {

class Loops : public BothMemories {};
INSTANTIATE_TEST_SUITE_P(Memories, Loops, kBothMemories, memory_name);

// The defect that the project starts from, and its mirror image: staging if and only if the work gathers.
TEST_P(Loops, StagesIfAndOnlyIfTheWorkGathers) {
  for (const bool overlap : {true, false}) {
    for (const bool graph : {false, true}) {
      for (const bool hooks : {true, false}) {
        const Flags flags = overlap ? small_flags() : without_overlap(small_flags());
        TrainingBench bench(graph ? with_graph(flags, 0) : flags, GetParam());
        bench.train(2);
        bench.loop([&](TrainingLoop& loop) { loop.start_loop(hooks); });
        EXPECT_EQ(bench.step().hooks_enabled(), hooks);
        ASSERT_EQ(bench.step().graph() != 0, graph);
        bench.train(1);
        SCOPED_TRACE(std::string(overlap ? "overlap" : "") + (graph ? " graph" : "") +
                     (hooks ? " hooks" : ""));
        const bool gathers = overlap && (graph || hooks);
        const std::size_t ops = bench.log.of(0).size();
        const std::size_t staged = first_of(bench, "copy_main_params"), step = first_of(bench, "adam");
        ASSERT_LT(step, ops);
        EXPECT_EQ(staged < step, gathers);
        EXPECT_EQ(staged == ops, overlap && !gathers);
        EXPECT_EQ(first_of(bench, "all_gather") < step, gathers);
        EXPECT_TRUE(bench.step().hooks_enabled()) << "on after a taken step";
        bench.train(2);
        EXPECT_EQ(bench.step().weights_current(), !overlap) << "gathered by the next work";
      }
    }
  }
}

TEST_P(Loops, HooksComeOnAfterAStepThatWasTaken) {
  TrainingBench bench(small_flags(), GetParam());
  bench.loop([](TrainingLoop& loop) { loop.start_loop(false); });
  for (int i = 0; i < 2; ++i) {
    bench.inject(1, Injection::grad);
    EXPECT_FALSE(bench.train());
    EXPECT_FALSE(bench.step(0).hooks_enabled() || bench.step(1).hooks_enabled());
    EXPECT_EQ(bench.log.count<AllGather>() + bench.log.count<CopyMainParams>(), 0u);
  }
  EXPECT_TRUE(bench.train());
  EXPECT_TRUE(bench.step().hooks_enabled());
  EXPECT_TRUE(bench.train());
  EXPECT_GT(bench.log.count<AllGather>(), 0u);
}

TEST_P(Loops, StartSyncsOnlyWeightsThatAreNotCurrent) {
  for (const bool hooks : {true, false}) {
    TrainingBench bench(small_flags(), GetParam());
    bench.loop([&](TrainingLoop& loop) { loop.start_loop(hooks); });
    EXPECT_TRUE(bench.log.entries.empty());
    EXPECT_EQ(bench.step().hooks_enabled(), hooks);
    bench.train(1);
    ASSERT_FALSE(bench.step().weights_current());
    bench.loop([&](TrainingLoop& loop) { loop.start_loop(hooks); });
    EXPECT_LT(last_of(bench, "zero_grad_buffer"), first_of(bench, "copy_main_params"));
    EXPECT_LT(last_of(bench, "copy_main_params"), first_of(bench, "all_gather"));
    EXPECT_TRUE(bench.step().weights_current());
    EXPECT_TRUE(bench.weights_follow_main_params());
  }
}

// Steps after a warmup are those of a run without one; its graph stays.
TEST_P(Loops, AWarmupLeavesNoTrace) {
  for (const Flags& flags : {small_flags(), without_overlap(small_flags()), with_graph(small_flags(), 1),
                             with_graph(without_overlap(small_flags()), 1)}) {
    TrainingBench bench(flags, GetParam()), expected(flags, GetParam());
    const std::vector<uint64_t> fresh = bench.optimizer_state();
    bench.loop([](TrainingLoop& loop) { loop.begin_warmup(); });
    EXPECT_TRUE(bench.step().hooks_enabled());
    bench.train(3);
    bench.loop([](TrainingLoop& loop) { loop.end_warmup(); });
    EXPECT_TRUE(bench.optimizer_state() == fresh);
    EXPECT_EQ(bench.step().batch(), 0u);
    EXPECT_TRUE(bench.step().weights_current());
    EXPECT_TRUE(bench.weights_follow_main_params());
    EXPECT_EQ(bench.step().graph() != 0, captures_full_iteration(flags));
    for (TrainingBench* b : {&bench, &expected}) {
      b->loop([](TrainingLoop& loop) { loop.start_loop(false); });
      b->train(3);
    }
    EXPECT_TRUE(bench.optimizer_state() == expected.optimizer_state());
  }
}

TEST_P(Loops, EndLeavesCurrentWeightsHooksOffAndTheGraphAsAsked) {
  for (const bool keep : {true, false}) {
    TrainingBench bench(with_graph(small_flags(), 2), GetParam());
    bench.train(3);
    bench.loop([&](TrainingLoop& loop) { loop.end_loop(keep); });
    EXPECT_TRUE(bench.step().weights_current());
    EXPECT_FALSE(bench.step().hooks_enabled());
    EXPECT_EQ(bench.step().graph() != 0, keep);
    EXPECT_TRUE(bench.weights_follow_main_params());
    bench.loop([](TrainingLoop& loop) { loop.start_loop(false); });
    EXPECT_TRUE(bench.log.entries.empty());
    bench.train(3);
    EXPECT_EQ(bench.step().counts().replays, keep ? 4 : 2) << "dropped: two calls before the next capture";
  }
}

// Evaluation at any time leaves the training as it was, bit for bit.
TEST_P(Loops, EvaluationLeavesTrainingAsItWas) {
  Flags bf16 = small_flags();
  bf16.fp8_recipe = Recipe::bf16;
  bf16.fp8_param_gather = bf16.reuse_grad_buf_for_mxfp8_param_ag = false;
  Flags apart = small_flags();
  apart.reuse_grad_buf_for_mxfp8_param_ag = false;
  Flags fp32_grads = small_flags();
  fp32_grads.grad_reduce_in_fp32 = true;
  for (const Flags& flags : {small_flags(), fp32_grads, apart, bf16, without_overlap(small_flags()),
                             with_graph(small_flags(), 1), with_graph(without_overlap(small_flags()), 1)}) {
    TrainingBench bench(flags, GetParam()), expected(flags, GetParam());
    const auto evaluate = [&] {
      const bool hooks = bench.step().hooks_enabled();
      bench.loop([](TrainingLoop& loop) { loop.evaluate(2); });
      EXPECT_EQ(bench.step().hooks_enabled(), hooks);
      EXPECT_TRUE(bench.step().weights_current());
    };
    evaluate();  // before any step
    for (TrainingBench* b : {&bench, &expected}) b->loop([](TrainingLoop& loop) { loop.start_loop(false); });
    evaluate();  // with hooks off
    for (int step = 0; step < 3; ++step) {
      for (TrainingBench* b : {&bench, &expected}) b->train(1);
      evaluate();
      evaluate();
    }
    EXPECT_TRUE(bench.optimizer_state() == expected.optimizer_state());
    EXPECT_EQ(bench.step().batch(), expected.step().batch());
    EXPECT_EQ(bench.step().counts().replays, expected.step().counts().replays);
  }
}

TEST(Loop, EvaluationsReadBatchesOfTheirOwn) {
  TrainingBench bench(small_flags());
  std::vector<int> batches;
  for (int i = 0; i < 2; ++i) {
    bench.loop([](TrainingLoop& loop) { loop.evaluate(2); });
    for (const LoadBatch& load : bench.log.all<LoadBatch>())
      if (load.rank == 0) batches.push_back(load.batch);
    EXPECT_EQ(bench.log.count<Adam>() + bench.log.count<ReduceScatter>(), 0u);
    EXPECT_LT(last_of(bench, "zero_grad_buffer"), first_of(bench, "copy_main_params"));
    EXPECT_LT(last_of(bench, "copy_main_params"), first_of(bench, "all_gather"));
    EXPECT_LT(last_of(bench, "zero_param_range"), first_of(bench, "load_batch"));
  }
  EXPECT_EQ(batches, (std::vector<int>{evaluation_batch(0), evaluation_batch(1), evaluation_batch(2),
                                       evaluation_batch(3)}));
}

// What the language's meaning table says of hooks, graph and calls, once more.
class Meaning {
 public:
  Meaning(bool overlap, int warmup_steps, int microbatches)
      : overlap_(overlap), warmup_steps_(warmup_steps), microbatches_(microbatches) {}

  void step(bool skipped) {
    if (!graph && calls_ >= warmup_steps_ && (hooks || !overlap_)) {
      graph = true;
      ++captures;
    }
    gathers = overlap_ && (graph || hooks);
    ++(graph ? replays : eager);
    ++calls_;
    if (!skipped) hooks = true;
  }
  void drop(bool counter) {
    graph = false;
    if (counter) calls_ = 0;
  }
  void set_microbatches(int n) {
    if (n != microbatches_) drop(false);
    microbatches_ = n;
  }

  bool hooks = true, graph = false, gathers = false;
  int captures = 0, replays = 0, eager = 0;

 private:
  bool overlap_;
  int warmup_steps_, microbatches_;
  int calls_ = 0;
};

TEST(Loop, CountsFollowTheMeaningOfDrawnActions) {
  int steps = 0, gathering = 0, skips = 0, captures = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 engine(seed);
    const auto below = [&engine](uint32_t limit) { return static_cast<int>(engine() % limit); };
    const bool overlap = below(4) != 0;
    const int warmup_steps = below(4);
    TrainingBench bench(with_graph(overlap ? small_flags() : without_overlap(small_flags()), warmup_steps));
    Meaning meaning(overlap, warmup_steps, 1);
    for (int i = 0; i < 25; ++i) {
      const int kind = below(12), number = below(2);
      switch (kind) {
        case 0:
          bench.loop([&](TrainingLoop& loop) { loop.start_loop(number == 1); });
          meaning.hooks = number == 1;
          break;
        case 1:
          bench.loop([&](TrainingLoop& loop) { loop.end_loop(number == 1); });
          meaning.hooks = false;
          if (number == 0) meaning.drop(true);
          break;
        case 2:
          bench.run([&](TrainStep& step) { step.set_microbatches(1 + number); });
          meaning.set_microbatches(1 + number);
          break;
        case 3:
          bench.run([](TrainStep& step) { step.reset_graph(); });
          meaning.drop(true);
          break;
        case 4:
          bench.loop([](TrainingLoop& loop) { loop.evaluate(1); });
          break;
        default: {
          const bool skipped = kind == 5;
          if (skipped) bench.inject(static_cast<std::size_t>(number), Injection::shard);
          EXPECT_EQ(bench.train(), !skipped);
          meaning.step(skipped);
          const std::size_t step = first_of(bench, "copy_reduced_grads");
          EXPECT_EQ(first_of(bench, "all_gather") < step, meaning.gathers);
          EXPECT_EQ(first_of(bench, "copy_main_params") < step, meaning.gathers);
          ++steps;
          gathering += meaning.gathers ? 1 : 0;
          skips += skipped ? 1 : 0;
        }
      }
      for (std::size_t rank = 0; rank < 2; ++rank) {
        const StepCounts& counts = bench.step(rank).counts();
        ASSERT_EQ(counts.captures, meaning.captures) << "seed " << seed << ", action " << i;
        ASSERT_EQ(counts.replays, meaning.replays) << "seed " << seed << ", action " << i;
        ASSERT_EQ(counts.eager, meaning.eager) << "seed " << seed << ", action " << i;
        ASSERT_EQ(bench.step(rank).hooks_enabled(), meaning.hooks);
        ASSERT_EQ(bench.step(rank).graph() != 0, meaning.graph);
      }
    }
    captures += meaning.captures;
  }
  EXPECT_GT(steps, 600);
  EXPECT_GT(gathering, 300);
  EXPECT_GT(skips, 50);
  EXPECT_GT(captures, 60);
}

// Memory at another address: the graph before names what is gone.
TEST_P(Loops, MovedGradMemoryIsCapturedAgain) {
  TrainingBench bench(with_graph(small_flags(), 0), GetParam());
  bench.train(2);
  const GraphId before = bench.step().graph();
  ASSERT_NE(before, 0);
  bench.loop([](TrainingLoop& loop) {
    loop.offload_grad_buffers();
    loop.restore_grad_buffers();
  });
  EXPECT_EQ(bench.step().graph(), 0);
  EXPECT_TRUE(bench.train());
  EXPECT_EQ(bench.step().counts().captures, 2);
  EXPECT_NE(bench.step().graph(), before);
}

TEST_P(Loops, WorkWhileGradMemoryIsOffloadedIsAnIllegalAddress) {
  TrainingBench bench(small_flags(), GetParam());
  bench.train(1);
  bench.loop([](TrainingLoop& loop) { loop.offload_grad_buffers(); });
  try {
    bench.train(1);
    FAIL() << "the grad buffers are not there";
  } catch (const RuntimeError& error) {
    EXPECT_EQ(error.error(), Error::illegal_address);
  }
}

TEST_P(Loops, ABatchThatRunsAgainLeavesStateAlone) {
  TrainingBench bench(small_flags(), GetParam());
  bench.train(2);
  const auto main = bench.optimizer_state();
  const uint32_t batch = bench.step().batch();
  bench.inject(0, Injection::grad);
  bench.loop([](TrainingLoop& loop) { loop.rerun_forward_backward(); });
  EXPECT_EQ(bench.optimizer_state(), main);
  EXPECT_EQ(bench.step().batch(), batch);
  EXPECT_FALSE(bench.train()) << "the injection waited for the next iteration";
}

TEST_P(Loops, EveryRankHearsThatWeightsDiffer) {
  TrainingBench bench(small_flags(), GetParam());
  bench.train(1);
  bench.loop([](TrainingLoop& loop) { loop.check_weight_hashes(); });
  for (const QuantizedWeight& weight : bench.step(1).parts().weights) {
    if (weight.rows == 0) continue;
    const Operand byte = weight.columnwise.slice(weight.columnwise.count() - 1, 1);
    if (GetParam() == MemoryKind::symbolic) {
      bench.world.symbolic()[1].assign(byte, "another"_term);
    } else {
      *bench.world.host()[1].data(byte) ^= std::byte{1};
    }
    break;
  }
  EXPECT_THROW(bench.run([](TrainStep& step) { step.check_weight_hashes(); }), WeightsDiffer);
}

// A fresh model in other buckets takes over all that the first one came to.
TEST(TrainingLoop, AStateGoesToTheHostAndIntoAFreshModel) {
  const auto state_of = [](TrainingBench& bench) {
    TrainingState state;
    bench.loop([&](TrainingLoop& loop) { loop.copy_state_to_host(state); });
    return state;
  };
  TrainingBench first(small_flags(), MemoryKind::host);
  first.train(2);
  first.loop([](TrainingLoop& loop) { loop.evaluate(3); });
  first.run([](TrainStep& step) { step.set_microbatches(2); });
  const TrainingState state = state_of(first);
  EXPECT_EQ(state.step, 2);
  EXPECT_EQ(state.batch, 2u);
  EXPECT_EQ(state.evaluations, 3u);
  EXPECT_EQ(state.microbatches, 2);

  Flags flags = small_flags();
  flags.num_buckets = 3;
  flags.data_parallel_size = 3;
  TrainingBench second(flags, MemoryKind::host);
  EXPECT_NE(state_of(second), state);
  second.loop([&](TrainingLoop& loop) { loop.resume(state); });
  EXPECT_EQ(state_of(second), state);
  EXPECT_TRUE(second.weights_follow_main_params());
}

}  // namespace
}  // namespace gatherfuzz
