// The lifetime of what a graph names, and worlds in two threads. The rules are conformance cases
// (properties/conformance).
#include <thread>

#include "impl/runtime/local/world_for_tests.h"

namespace gatherfuzz {
namespace {

class ReplayTest : public BothMemories {};
INSTANTIATE_TEST_SUITE_P(Memories, ReplayTest, kBothMemories, memory_name);

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
