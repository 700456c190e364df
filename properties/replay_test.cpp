// A replay is a replay: what the host changes after capture changes nothing in what a replay executes.
#include <cstring>

#include "impl/runtime/local/world.h"
#include "impl/training/loop.h"
#include "properties/test_programs.h"

namespace gatherfuzz {
namespace {

// The ops of replays of rank 0, with all their bytes: scalars and addresses.
class GraphOps : public Observer {
 public:
  std::vector<std::string> ops;

  void before(const OpRef& op) override {
    if (op.graph == 0 || op.rank != 0) return;
    ops.push_back(std::string(op.type->name) + " " +
                  std::string(reinterpret_cast<const char*>(op.op), op.type->size));
  }
  void after(const OpRef&) override {}
  void mark(int, const Mark&) override {}
};

class ReplayIsAReplay : public testing::TestWithParam<MemoryKind> {};

TEST_P(ReplayIsAReplay, WhateverTheHostChanges) {
  const Program program = small_program(
      "mxfp8",
      "set cuda_graph_impl full_iteration\nset cuda_graph_warmup_steps 1\nset num_microbatches 2\ntrain 1\n");
  WorldOptions options;
  options.ranks = 2;
  options.memory = GetParam();
  World world(options);
  GraphOps seen;
  world.set_observer(&seen);
  const Dataset dataset = Dataset::synthetic(program.flags.vocab_size, 0);
  std::vector<std::unique_ptr<TrainStep>> models(2);
  std::vector<std::vector<std::string>> replays;
  world.run([&](Runtime& runtime) {
    auto& model = models[static_cast<std::size_t>(runtime.rank())];
    model = std::make_unique<TrainStep>(runtime, program.flags, dataset, false);
    TrainStep& step = *model;
    TrainingLoop loop(step);
    const StreamId compute = step.parts().streams.compute;
    auto keep = [&] {
      runtime.synchronize_stream(compute);
      if (runtime.rank() == 0) {
        replays.push_back(seen.ops);
        seen.ops.clear();
      }
    };
    // No oracle and no loop stands in the way: the graph is launched as it is.
    auto replay = [&] {
      runtime.launch_graph(compute, step.graph());
      keep();
    };
    loop.train_step();
    loop.train_step();  // captures and replays
    keep();
    replay();
    step.disable_forward_pre_hook();  // a host flag
    replay();
    step.skip_batch();  // the data position
    step.inject(Injection::grad);
    replay();
    loop.evaluate(1);
    replay();
    const GraphId graph = step.graph();
    step.optimizer_step();  // Adam's step number and the version of the weights
    replay();
    // The microbatch count: the loop would drop the graph, so its recorded ops are compared instead of run.
    std::string before, after;
    for (std::string* text : {&before, &after}) {
      const GraphExec& exec = *world.graphs(runtime.rank())[graph - 1u];
      for (const GraphNode& node : exec.nodes)
        *text += std::string(reinterpret_cast<const char*>(exec.op(node)), node.type->size);
      if (text == &before) step.set_microbatches(1);
    }
    EXPECT_EQ(before, after);
    EXPECT_GT(before.size(), 1000u);
  });
  ASSERT_EQ(replays.size(), 6u);
  EXPECT_GT(replays[0].size(), 50u);
  for (std::size_t i = 1; i < replays.size(); ++i) EXPECT_EQ(replays[i], replays[0]) << "replay " << i;
}

INSTANTIATE_TEST_SUITE_P(Memories, ReplayIsAReplay, testing::Values(MemoryKind::symbolic, MemoryKind::host));

}  // namespace
}  // namespace gatherfuzz
