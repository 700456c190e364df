// The raw actions of a training step: host state against what is launched.
#include "impl/training/train_step.h"

#include <gtest/gtest.h>

#include "impl/kernels/adam.h"
#include "impl/kernels/load_batch.h"
#include "impl/kernels/main_params.h"
#include "impl/kernels/quantize_weight.h"
#include "impl/training/training_bench_for_tests.h"

namespace gatherfuzz {
namespace {

void iteration(TrainStep& step) {
  step.zero_grad_buffer();
  if (step.next_work_gathers()) step.copy_main_params_to_param_buffer();
  step.forward_backward();
  step.finish_grad_sync();
  step.optimizer_step();
}
void iterations(TrainingBench& bench, int n) {
  for (int i = 0; i < n; ++i) bench.run(iteration);
}

class TrainSteps : public BothMemories {};
INSTANTIATE_TEST_SUITE_P(Memories, TrainSteps, kBothMemories, memory_name);

TEST_P(TrainSteps, AFreshModelHasCurrentWeightsAndHooksOn) {
  for (const Flags& flags : {small_flags(), without_overlap(small_flags())}) {
    TrainingBench bench(flags, GetParam());
    EXPECT_TRUE(bench.step().hooks_enabled());
    EXPECT_TRUE(bench.step().weights_current());
    EXPECT_EQ(bench.step().graph(), 0);
    EXPECT_EQ(bench.step().next_work_gathers(), flags.overlap_param_gather);
    EXPECT_EQ(bench.step().counts().eager + bench.step().counts().captures + bench.step().counts().replays,
              0);
    EXPECT_TRUE(bench.weights_follow_main_params());
  }
}

// In the order of the design: zero, stage, gather, quantize and clear, reduce, step.
TEST_P(TrainSteps, OneIterationInOrder) {
  TrainingBench bench(small_flags(), GetParam());
  iterations(bench, 1);
  const std::size_t none = bench.log.of(0).size();
  EXPECT_LT(last_of(bench, "zero_grad_buffer"), first_of(bench, "copy_main_params"));
  EXPECT_LT(last_of(bench, "copy_main_params"), first_of(bench, "all_gather"));
  EXPECT_LT(first_of(bench, "all_gather"), first_of(bench, "quantize:"));
  EXPECT_LT(last_of(bench, "zero_param_range"), first_of(bench, "scale_gradients"));
  EXPECT_LT(first_of(bench, "scale_gradients"), first_of(bench, "reduce_scatter"));
  EXPECT_LT(last_of(bench, "reduce_scatter"), first_of(bench, "copy_reduced_grads"));
  EXPECT_LT(last_of(bench, "unscale_grads"), first_of(bench, "grad_norm_partial"));
  EXPECT_LT(last_of(bench, "clip_coefficient"), first_of(bench, "adam"));
  EXPECT_LT(last_of(bench, "adam"), none);
}

// What forward_backward launches is what next_work_gathers announced: for hooks on and off, without a graph,
// and with one.
TEST_P(TrainSteps, WorkGathersAsAnnounced) {
  int gathering = 0;
  for (const bool overlap : {true, false}) {
    for (const bool graph : {false, true}) {
      for (const bool hooks : {true, false}) {
        const Flags flags = overlap ? small_flags() : without_overlap(small_flags());
        TrainingBench bench(graph ? with_graph(flags, 0) : flags, GetParam());
        iterations(bench, 2);
        ASSERT_EQ(bench.step().graph() != 0, graph);
        bench.run([&](TrainStep& step) {
          hooks ? step.enable_forward_pre_hook() : step.disable_forward_pre_hook();
          step.zero_grad_buffer();
          if (step.next_work_gathers()) step.copy_main_params_to_param_buffer();
        });
        const bool expected = overlap && (graph || hooks);
        EXPECT_EQ(bench.step().next_work_gathers(), expected);
        bench.run([](TrainStep& step) { step.forward_backward(); });
        EXPECT_EQ(bench.log.count<AllGather>() > 0, expected);
        EXPECT_EQ(bench.log.count<QuantizeWeight>() > 0, expected);
        EXPECT_EQ(bench.log.count<CopyMainParams>(), 0u);
        for (const OpLog::Entry& e : bench.log.entries) {
          const bool outside = e.name.starts_with("load_batch") || e.name == "set_scalar";
          EXPECT_EQ(e.graph != 0, graph && !outside) << e.name;
        }
        EXPECT_EQ(bench.step().weights_current(), expected || !overlap);
        EXPECT_EQ(bench.weights_follow_main_params(), expected || !overlap);
        gathering += expected ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(gathering, 3);
}

// After a replay neither hooks nor the end of the gradient sync have anything left to do.
TEST_P(TrainSteps, AReplayAppliesHostState) {
  TrainingBench bench(with_graph(small_flags(), 0), GetParam());
  iterations(bench, 2);
  bench.run([](TrainStep& step) {
    step.zero_grad_buffer();
    step.copy_main_params_to_param_buffer();
    step.forward_backward();
  });
  EXPECT_EQ(bench.step().counts().replays, 3);
  bench.run([](TrainStep& step) { step.forward_evaluation(0); });
  EXPECT_TRUE(bench.step().hooks_enabled());
  EXPECT_EQ(bench.log.count<AllGather>() + bench.log.count<QuantizeWeight>(), 0u);
  bench.run([](TrainStep& step) { step.finish_grad_sync(); });
  EXPECT_EQ(bench.log.count<ReduceScatter>(), 0u);
}

TEST_P(TrainSteps, AGraphComputesWhatEagerWorkDoes) {
  for (const Flags& flags : {small_flags(), without_overlap(small_flags())}) {
    TrainingBench eager(flags, GetParam());
    iterations(eager, 4);
    for (const int warmup : {0, 1, 3}) {
      TrainingBench graph(with_graph(flags, warmup), GetParam());
      iterations(graph, 4);
      EXPECT_EQ(graph.step().counts().replays, 4 - warmup);
      EXPECT_TRUE(graph.optimizer_state() == eager.optimizer_state()) << warmup;
    }
  }
}

TEST(TrainStep, CapturesAtTheCallAfterTheWarmup) {
  for (int warmup = 0; warmup < 4; ++warmup) {
    TrainingBench bench(with_graph(small_flags(), warmup));
    for (int call = 0; call < 5; ++call) {
      iterations(bench, 1);
      const StepCounts& counts = bench.step().counts();
      EXPECT_EQ(counts.captures, call >= warmup ? 1 : 0);
      EXPECT_EQ(counts.eager, std::min(call + 1, warmup));
      EXPECT_EQ(counts.replays, std::max(call + 1 - warmup, 0));
    }
  }
}

// A graph captured with hooks off would hold no gather, and the weights would never change again.
TEST(TrainStep, CaptureWaitsForTheHooks) {
  TrainingBench bench(with_graph(small_flags(), 1));
  bench.run([](TrainStep& step) { step.disable_forward_pre_hook(); });
  iterations(bench, 3);
  EXPECT_EQ(bench.step().graph(), 0);
  EXPECT_EQ(bench.step().counts().eager, 3);
  bench.run([](TrainStep& step) { step.enable_forward_pre_hook(); });
  iterations(bench, 1);
  EXPECT_NE(bench.step().graph(), 0);
  EXPECT_TRUE(bench.step().next_work_gathers());

  TrainingBench without(with_graph(without_overlap(small_flags()), 1));
  without.run([](TrainStep& step) { step.disable_forward_pre_hook(); });
  iterations(without, 2);
  EXPECT_NE(without.step().graph(), 0) << "without overlap no work gathers, hooks or not";
  EXPECT_FALSE(without.step().next_work_gathers());
}

TEST(TrainStep, AnotherNumberOfMicrobatchesDropsTheGraph) {
  TrainingBench bench(with_graph(small_flags(), 2));
  iterations(bench, 3);
  const GraphId graph = bench.step().graph();
  ASSERT_NE(graph, 0);
  bench.run([](TrainStep& step) { step.set_microbatches(1); });
  EXPECT_EQ(bench.step().graph(), graph) << "the number is what it was";
  bench.run([](TrainStep& step) { step.set_microbatches(3); });
  EXPECT_EQ(bench.step().graph(), 0);
  EXPECT_FALSE(bench.world.graphs(0)[graph - 1u]->alive);
  iterations(bench, 1);
  EXPECT_EQ(bench.step().counts().captures, 2) << "calls count on";
  EXPECT_EQ(bench.log.count<LoadBatch>(), 3u * 2);
  bench.run([](TrainStep& step) { step.reset_graph(); });
  iterations(bench, 1);
  EXPECT_EQ(bench.step().counts().captures, 2) << "calls count from zero";
  EXPECT_EQ(bench.step().graph(), 0);
  iterations(bench, 2);
  EXPECT_EQ(bench.step().counts().captures, 3);
}

TEST(TrainStep, EachIterationLoadsTheNextBatch) {
  for (const int warmup : {0, 2}) {
    Flags flags = with_graph(small_flags(), warmup);
    flags.num_microbatches = 2;
    TrainingBench bench(flags);
    for (int batch : {0, 1, 3, 4}) {
      if (batch == 3) bench.run([](TrainStep& step) { step.skip_batch(); });
      iterations(bench, 1);
      const std::vector<LoadBatch> loads = bench.log.all<LoadBatch>();
      ASSERT_EQ(loads.size(), 4u);
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(loads[i].batch, batch);
        EXPECT_EQ(loads[i].microbatch, static_cast<int>(i % 2));
        EXPECT_EQ(loads[i].rank, static_cast<int>(i / 2));
      }
    }
    EXPECT_EQ(bench.step().batch(), 5u);
  }
}

// On one rank alone: all ranks skip, the data and the number of calls move on, the next iteration is clean.
TEST_P(TrainSteps, AnInjectionSkipsOneStepOnAllRanks) {
  Flags by_norm = small_flags();
  by_norm.loss_scale.reset();
  by_norm.grad_norm_skip_threshold = 1e6;
  for (const Flags& base : {small_flags(), by_norm}) {
    for (const Injection injection : {Injection::grad, Injection::shard}) {
      for (const bool graph : {false, true}) {
        TrainingBench bench(graph ? with_graph(base, 1) : base, GetParam());
        iterations(bench, 2);
        const std::vector<uint64_t> before = bench.optimizer_state();
        bench.inject(1, injection);
        iterations(bench, 1);
        EXPECT_EQ(bench.log.count<Adam>(), 0u);
        EXPECT_TRUE(bench.optimizer_state() == before);
        EXPECT_TRUE(bench.step(0).weights_current());
        EXPECT_EQ(bench.step(0).batch(), 3u);
        EXPECT_EQ(bench.step(0).counts().replays, graph ? 2 : 0);
        iterations(bench, 1);
        EXPECT_GT(bench.log.count<Adam>(), 0u);
      }
    }
  }
}

// Without overlap a taken step ends with staging and a gather of everything; a skipped one with nothing.
TEST_P(TrainSteps, WithoutOverlapATakenStepSyncsTheWeights) {
  for (const bool graph : {false, true}) {
    const Flags flags = without_overlap(small_flags());
    TrainingBench bench(graph ? with_graph(flags, 0) : flags, GetParam());
    iterations(bench, 1);
    EXPECT_LT(last_of(bench, "adam"), first_of(bench, "copy_main_params"));
    EXPECT_LT(last_of(bench, "copy_main_params"), first_of(bench, "all_gather"));
    EXPECT_EQ(bench.log.count<QuantizeWeight>(), 2u * 4);
    EXPECT_TRUE(bench.step().weights_current());
    EXPECT_TRUE(bench.weights_follow_main_params());
    bench.inject(0, Injection::grad);
    iterations(bench, 1);
    EXPECT_EQ(bench.log.count<CopyMainParams>() + bench.log.count<AllGather>(), 0u);
    EXPECT_TRUE(bench.step().weights_current());
  }
}

TEST_P(TrainSteps, RestoreBringsOptimizerAndBatchBackAndOutdatesTheWeights) {
  TrainingBench bench(small_flags(), GetParam());
  iterations(bench, 1);
  const std::vector<uint64_t> before = bench.optimizer_state();
  std::map<const TrainStep*, TrainSnapshot> saved;  // by rank
  bench.run([&](TrainStep& step) { step.save_state(saved[&step]); });
  iterations(bench, 2);
  EXPECT_FALSE(bench.optimizer_state() == before);
  bench.run([&](TrainStep& step) { step.restore_state(saved[&step]); });
  EXPECT_TRUE(bench.optimizer_state() == before);
  EXPECT_EQ(bench.step().batch(), 1u);
  EXPECT_FALSE(bench.step().weights_current());
  EXPECT_FALSE(bench.weights_follow_main_params());
}

}  // namespace
}  // namespace gatherfuzz
