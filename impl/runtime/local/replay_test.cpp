// What a graph keeps and what it looks up at replay: rules 34 to 38, and the lifetime of memory.
#include <thread>

#include "impl/runtime/local/world_for_tests.h"

namespace gatherfuzz {
namespace {

class ReplayTest : public BothMemories {};
INSTANTIATE_TEST_SUITE_P(Memories, ReplayTest, kBothMemories, memory_name);

// rule 34
TEST_P(ReplayTest, ScalarsAndAddressesAreFrozen) {
  World world(options());
  View<float> x, y;
  world.run([&](Runtime& rt) {
    x = floats(rt, 4), y = floats(rt, 4);
    const StreamId s = rt.create_stream("s");
    AddTo op{x, 1};
    rt.begin_capture(s);
    rt.launch(s, op);
    op.value = 100;
    static_cast<Operand&>(op.target) = y;
    const GraphId graph = rt.end_capture(s);
    rt.launch_graph(s, graph);
    rt.launch_graph(s, graph);
  });
  EXPECT_TRUE(holds(world, 0, x, 2));
  EXPECT_TRUE(holds(world, 0, y, 0));
}

// rule 35
TEST_P(ReplayTest, ContentIsReadAtReplay) {
  World world(options());
  View<float> x, y;
  world.run([&](Runtime& rt) {
    x = floats(rt, 4), y = floats(rt, 4);
    const StreamId s = rt.create_stream("s");
    rt.launch(s, SetTo{x, 1});
    rt.begin_capture(s);
    rt.launch(s, TripleAdd{x, y, 0});
    const GraphId graph = rt.end_capture(s);
    for (int value = 2; value < 5; ++value) {
      rt.launch(s, SetTo{x, value});
      rt.launch_graph(s, graph);
      rt.synchronize_stream(s);
      EXPECT_TRUE(holds(world, 0, y, 3 * value));
    }
  });
}

// rule 35: all memory must outlive the graph
TEST_P(ReplayTest, ReleasedMemoryIsAnIllegalAddress) {
  World world(options());
  View<float> y;
  world.run([&](Runtime& rt) {
    const View<float> x = floats(rt, 4, Fill::zero, "the released one");
    y = floats(rt, 4);
    const StreamId s = rt.create_stream("s");
    rt.begin_capture(s);
    rt.launch(s, AddTo{y, 1});
    rt.launch(s, AddTo{x, 1});
    const GraphId graph = rt.end_capture(s);
    rt.launch_graph(s, graph);
    rt.launch_graph(s, graph);
    rt.release(x.buffer);
    std::string text;
    EXPECT_EQ(error_of([&] { rt.launch_graph(s, graph); }, &text), Error::illegal_address);
    EXPECT_EQ(text,
              "cudaErrorIllegalAddress: add_to names memory that is not allocated (bytes 0 to 16 of buffer "
              "the released "
              "one)");
    EXPECT_EQ(error_of([&] { rt.launch(s, AddTo{x, 1}); }), Error::illegal_address);
    EXPECT_EQ(error_of([&] { rt.read(s, x); }), Error::illegal_address);
    EXPECT_EQ(error_of([&] { rt.release(x.buffer); }), Error::invalid_value);
  });
  EXPECT_TRUE(holds(world, 0, y, 2));
}

TEST_P(ReplayTest, BytesOutsideOfABufferAreAnIllegalAddress) {
  World world(options());
  world.run([](Runtime& rt) {
    const View<float> x = floats(rt, 4);
    rt.launch(0, AddTo{x.slice(2, 2), 1});
    EXPECT_EQ(error_of([&] { rt.launch(0, AddTo{x.slice(2, 3), 1}); }), Error::illegal_address);
    EXPECT_EQ(error_of([&] { rt.launch(0, AddTo{x.slice(0xFFFFFFF0u / 4, 8), 1}); }), Error::illegal_address);
    EXPECT_EQ(error_of([&] { rt.launch(0, AddTo{make_view<float>(77, 0, 1), 1}); }), Error::illegal_address);
    EXPECT_EQ(error_of([&] { rt.launch(0, AddTo{make_view<float>(0, 0, 1), 1}); }), Error::illegal_address);
    rt.launch(0, AddTo{View<float>(), 1});  // no bytes are no access
  });
}

// Release waits for what is queued, on every stream.
TEST_P(ReplayTest, ReleaseComesAfterQueuedWork) {
  for (const Schedule schedule : {Schedule::fifo, Schedule::reverse}) {
    World world(options(1, schedule));
    View<float> y;
    world.run([&](Runtime& rt) {
      const View<float> x = floats(rt, 4);
      y = floats(rt, 4);
      rt.launch(0, SetTo{x, 5});
      rt.launch(0, TripleAdd{x, y, 0});
      rt.release(x.buffer);
    });
    EXPECT_TRUE(holds(world, 0, y, 15));
  }
}

// rule 36, rule 37
TEST_P(ReplayTest, LaunchesOfOneGraphAreOrderedAlsoAcrossStreams) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    World world(options(1, Schedule::random, seed));
    View<float> x, y, z;
    world.run([&](Runtime& rt) {
      x = floats(rt, 4), y = floats(rt, 4), z = floats(rt, 4);
      const StreamId s = rt.create_stream("s"), t = rt.create_stream("t");
      const EventId fork = rt.create_event(), join = rt.create_event();
      rt.begin_capture(s);
      rt.record(fork, s);
      rt.wait(t, fork);
      rt.launch(s, TripleAdd{x, x, 1});
      rt.launch(t, TripleAdd{y, y, 2});
      rt.record(join, t);
      rt.wait(s, join);
      rt.launch(s, TripleAdd{x, z, 0});
      const GraphId graph = rt.end_capture(s);
      rt.launch(s, SetTo{x, 1});  // prior work of the stream
      rt.launch_graph(s, graph);
      rt.launch_graph(s, graph);
      rt.launch_graph(t, graph);  // no event orders it, the graph itself does
      rt.launch(t, TripleAdd{y, y, 0});
    });
    EXPECT_TRUE(holds(world, 0, x, 3 * (3 * (3 * 1 + 1) + 1) + 1)) << seed;
    EXPECT_TRUE(holds(world, 0, z, 3 * 40)) << seed;
    EXPECT_TRUE(holds(world, 0, y, 3 * 26)) << seed;
  }
}

// rule 37: inside, only edges order
TEST_P(ReplayTest, BranchesOfAGraphRunInAnyOrder) {
  std::vector<int> seen(2, 0);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    World world(options(1, Schedule::random, seed));
    View<float> x;
    world.run([&](Runtime& rt) {
      x = floats(rt, 4);
      const StreamId s = rt.create_stream("s"), t = rt.create_stream("t");
      const EventId fork = rt.create_event(), join = rt.create_event();
      rt.begin_capture(s);
      rt.record(fork, s);
      rt.wait(t, fork);
      rt.launch(s, SetTo{x, 1});
      rt.launch(t, SetTo{x, 2});
      rt.record(join, t);
      rt.wait(s, join);
      rt.launch(s, TripleAdd{x, x, 0});
      rt.launch_graph(s, rt.end_capture(s));
    });
    if (holds(world, 0, x, 3)) ++seen[0];
    if (holds(world, 0, x, 6)) ++seen[1];
  }
  EXPECT_EQ(seen[0] + seen[1], 40) << "an edge was not kept";
  EXPECT_GT(seen[0], 5);
  EXPECT_GT(seen[1], 5);
}

// rule 38, rule 54: a world belongs to one thread; worlds of different threads do not disturb each other
TEST_P(ReplayTest, WorldsInTwoThreadsAreIndependent) {
  std::vector<int> correct(2, 0);
  const auto work = [&](std::size_t me) {
    for (int i = 0; i < 50; ++i) {
      World world(options(3));
      View<float> x;
      world.run([&](Runtime& rt) {
        x = floats(rt, 64);
        const StreamId s = rt.create_stream("s");
        rt.begin_capture(s);
        rt.launch(s, TripleAdd{x, x, static_cast<int>(me) + 1});
        const GraphId graph = rt.end_capture(s);
        for (int n = 0; n < 3; ++n) {
          rt.launch_graph(s, graph);
          rt.synchronize_stream(s);
        }
      });
      correct[me] += holds(world, 2, x, 13 * (static_cast<int>(me) + 1)) ? 1 : 0;
    }
  };
  std::thread first(work, 0), second(work, 1);
  first.join();
  second.join();
  EXPECT_EQ(correct, (std::vector<int>{50, 50}));
}

TEST_P(ReplayTest, DestroyedGraphIsGone) {
  World world(options());
  View<float> x;
  world.run([&](Runtime& rt) {
    x = floats(rt, 4);
    const StreamId s = rt.create_stream("s");
    rt.begin_capture(s);
    rt.launch(s, AddTo{x, 1});
    const GraphId graph = rt.end_capture(s);
    rt.launch_graph(s, graph);
    rt.destroy_graph(graph);
    EXPECT_EQ(error_of([&] { rt.launch_graph(s, graph); }), Error::invalid_value);
    EXPECT_EQ(error_of([&] { rt.destroy_graph(graph); }), Error::invalid_value);
  });
  EXPECT_TRUE(holds(world, 0, x, 1)) << "a launch in flight is completed";
}

}  // namespace
}  // namespace gatherfuzz
