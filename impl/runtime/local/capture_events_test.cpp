// The edges of captured graphs, and questions to events. The rules are conformance cases
// (properties/conformance).
#include "impl/runtime/local/world_for_tests.h"

namespace gatherfuzz {
namespace {

class CaptureEventsTest : public BothMemories {};
INSTANTIATE_TEST_SUITE_P(Memories, CaptureEventsTest, kBothMemories, memory_name);

using Edges = std::vector<uint32_t>;

Edges edges_to(const GraphExec& graph, std::size_t node) {
  const std::span<const uint32_t> after = graph.after(graph.nodes[node]);
  return {after.begin(), after.end()};
}

// rule 15, rule 16, rule 19
TEST_P(CaptureEventsTest, ForkAndJoinBecomeEdges) {
  World world(options());
  View<float> x, y;
  world.run([&](Runtime& rt) {
    x = floats(rt, 4), y = floats(rt, 4);
    const StreamId s = rt.create_stream("s"), t = rt.create_stream("t");
    const EventId fork = rt.create_event(), join = rt.create_event(), late = rt.create_event();
    rt.launch(t, SetTo{y, 9});
    rt.begin_capture(s);
    rt.launch(s, AddTo{x, 1});  // node 0
    rt.record(fork, s);         // of node 0
    rt.launch(s, AddTo{x, 2});  // node 1
    rt.wait(t, fork);           // pulls t in
    EXPECT_TRUE(rt.capturing(t));
    rt.launch(t, TripleAdd{y, y, 1});  // node 2 follows 0 alone
    rt.record(late, s);
    rt.wait(t, late);
    rt.launch(t, TripleAdd{x, y, 0});  // node 3 follows its own 2 and the event's 1
    rt.record(join, t);
    rt.wait(s, join);
    rt.launch(s, AddTo{x, 5});  // node 4 follows 1 and 3
    const GraphId graph = rt.end_capture(s);
    EXPECT_FALSE(rt.capturing(t));
    rt.launch(t, AddTo{y, 1});  // after the capture t goes on as if nothing had been captured
    rt.launch_graph(t, graph);
  });
  const GraphExec& graph = *world.graphs(0).at(0);
  ASSERT_EQ(graph.nodes.size(), 5u);
  EXPECT_EQ(edges_to(graph, 0), Edges{});
  EXPECT_EQ(edges_to(graph, 1), Edges{0});
  EXPECT_EQ(edges_to(graph, 2), Edges{0});
  EXPECT_EQ(edges_to(graph, 3), (Edges{2, 1}));
  EXPECT_EQ(edges_to(graph, 4), (Edges{1, 3}));
  EXPECT_TRUE(holds(world, 0, x, 8));
  EXPECT_TRUE(holds(world, 0, y, 9));
}

// rule 19: the first captured op of a stream follows no op from before the capture
TEST_P(CaptureEventsTest, EarlierWorkOfAStreamIsNoNodeAndNoEdge) {
  World world(options());
  world.run([](Runtime& rt) {
    const View<float> x = floats(rt, 4);
    const StreamId s = rt.create_stream("s");
    rt.launch(s, SetTo{x, 1});
    rt.begin_capture(s);
    rt.launch(s, SetTo{x, 2});
    rt.end_capture(s);
    rt.begin_capture(s);
    rt.launch(s, SetTo{x, 3});
    rt.end_capture(s);
  });
  for (const auto& graph : world.graphs(0)) {
    ASSERT_EQ(graph->nodes.size(), 1u);
    EXPECT_EQ(edges_to(*graph, 0), Edges{});
  }
}

// rule 24
TEST_P(CaptureEventsTest, UnrecordedEventIsComplete) {
  World world(options());
  View<float> x;
  world.run([&](Runtime& rt) {
    x = floats(rt, 4);
    const StreamId s = rt.create_stream("s");
    const EventId e = rt.create_event(), recorded = rt.create_event();
    rt.launch(s, AddTo{x, 1});
    EXPECT_TRUE(rt.query(e)) << "although work is queued";
    rt.synchronize(e);
    rt.wait(s, e);
    rt.record(recorded, s);
    EXPECT_FALSE(rt.query(recorded));
    EXPECT_TRUE(rt.query(recorded)) << "time passes between two questions";
    rt.launch(s, AddTo{x, 1});
    EXPECT_TRUE(rt.query(recorded)) << "later work does not matter";
  });
  EXPECT_TRUE(holds(world, 0, x, 2));
}

// rule 24: a host that synchronizes sees the work before the record done
TEST_P(CaptureEventsTest, SynchronizeWaitsForTheRecord) {
  for (const Schedule schedule : {Schedule::fifo, Schedule::reverse, Schedule::random, Schedule::pct}) {
    World world(options(2, schedule, 3));
    world.run([&](Runtime& rt) {
      const View<float> x = floats(rt, 4);
      const StreamId s = rt.create_stream("s"), t = rt.create_stream("t");
      const EventId e = rt.create_event();
      for (int i = 1; i <= 5; ++i) {
        rt.launch(s, AddTo{x, 1});
        rt.record(e, s);
        rt.synchronize(e);
        EXPECT_TRUE(holds(world, rt.rank(), x, 2 * i - 1));
        rt.launch(t, AddTo{x, 1});
        rt.synchronize_stream(t);
        EXPECT_TRUE(holds(world, rt.rank(), x, 2 * i));
      }
    });
  }
}

}  // namespace
}  // namespace gatherfuzz
