// The life of a capture: rules 1 to 8 of CUDA's stream capture, by number.
#include "impl/runtime/local/world_for_tests.h"

namespace gatherfuzz {
namespace {

class CaptureTest : public BothMemories {};
INSTANTIATE_TEST_SUITE_P(Memories, CaptureTest, kBothMemories, memory_name);

// rule 1
TEST_P(CaptureTest, BeginOnLegacyOrCapturingStreamIsAnError) {
  World world(options());
  world.run([](Runtime& rt) {
    std::string text;
    EXPECT_EQ(error_of([&] { rt.begin_capture(0); }, &text), Error::stream_capture_unsupported);
    EXPECT_NE(text.find("cudaErrorStreamCaptureUnsupported"), std::string::npos) << text;
    const StreamId s = rt.create_stream("s");
    rt.begin_capture(s);
    EXPECT_EQ(error_of([&] { rt.begin_capture(s); }, &text), Error::illegal_state);
    EXPECT_NE(text.find("cudaErrorIllegalState"), std::string::npos) << text;
    EXPECT_TRUE(rt.capturing(s));
    EXPECT_NE(rt.end_capture(s), 0) << "and the capture goes on";
    EXPECT_FALSE(rt.capturing(s));
    EXPECT_EQ(error_of([&] { rt.end_capture(s); }), Error::illegal_state);
  });
}

// rule 2
TEST_P(CaptureTest, EndOnAnotherStreamIsUnmatched) {
  World world(options());
  world.run([](Runtime& rt) {
    const StreamId s = rt.create_stream("origin"), t = rt.create_stream("fork");
    const EventId e = rt.create_event();
    rt.begin_capture(s);
    rt.record(e, s);
    rt.wait(t, e);
    std::string text;
    EXPECT_EQ(error_of([&] { rt.end_capture(t); }, &text), Error::stream_capture_unmatched);
    EXPECT_EQ(text, "cudaErrorStreamCaptureUnmatched: the capture began on stream origin, not on fork");
    EXPECT_EQ(error_of([&] { rt.end_capture(s); }), Error::stream_capture_invalidated);
    EXPECT_FALSE(rt.capturing(s));
    EXPECT_FALSE(rt.capturing(t));
  });
}

// rule 3
TEST_P(CaptureTest, EndFromAnotherThreadNeedsRelaxed) {
  World world(options());
  world.run([](Runtime& rt) {
    const StreamId s = rt.create_stream("s");
    for (const CaptureMode mode : {CaptureMode::global, CaptureMode::thread_local_}) {
      rt.on_host_thread(1);
      rt.begin_capture(s, mode);
      rt.on_host_thread(2);
      EXPECT_EQ(error_of([&] { rt.end_capture(s); }), Error::stream_capture_wrong_thread);
      rt.on_host_thread(1);
      EXPECT_NE(rt.end_capture(s), 0);
    }
    rt.begin_capture(s, CaptureMode::relaxed);
    rt.on_host_thread(2);
    EXPECT_NE(rt.end_capture(s), 0);
  });
}

// rule 4
TEST_P(CaptureTest, ForkThatIsNotJoinedIsNamed) {
  World world(options());
  world.run([](Runtime& rt) {
    const View<float> x = floats(rt, 4), y = floats(rt, 4), z = floats(rt, 4);
    const StreamId s = rt.create_stream("main"), joined = rt.create_stream("joined"),
                   lost = rt.create_stream("lost");
    const EventId fork = rt.create_event(), join = rt.create_event();
    rt.begin_capture(s);
    rt.launch(s, SetTo{x, 1});
    rt.record(fork, s);
    rt.wait(joined, fork);
    rt.wait(lost, fork);
    rt.launch(joined, SetTo{y, 2});
    rt.launch(lost, SetTo{z, 2});
    rt.record(join, joined);
    rt.wait(s, join);
    std::string text;
    EXPECT_EQ(error_of([&] { rt.end_capture(s); }, &text), Error::stream_capture_unjoined);
    EXPECT_EQ(text, "cudaErrorStreamCaptureUnjoined: work on lost was not joined to the origin stream main");
    for (const StreamId each : {s, joined, lost}) EXPECT_FALSE(rt.capturing(each));
    rt.launch(s, SetTo{x, 5});
  });
}

// rule 5, rule 6
TEST_P(CaptureTest, InvalidatedUntilEndedThenUsableAgain) {
  World world(options());
  View<float> x;
  world.run([&](Runtime& rt) {
    x = floats(rt, 4);
    const StreamId s = rt.create_stream("s"), t = rt.create_stream("t"), other = rt.create_stream("other");
    const EventId e = rt.create_event(), free = rt.create_event();
    rt.begin_capture(s);
    rt.launch(s, SetTo{x, 1});
    rt.record(e, s);
    rt.wait(t, e);
    EXPECT_EQ(error_of([&] { rt.synchronize_stream(t); }), Error::stream_capture_unsupported);
    const Error invalidated = Error::stream_capture_invalidated;
    for (const StreamId each : {s, t}) {
      EXPECT_EQ(error_of([&] { rt.launch(each, SetTo{x, 2}); }), invalidated);
      EXPECT_EQ(error_of([&] { rt.record(free, each); }), invalidated);
      EXPECT_EQ(error_of([&] { rt.wait(each, e); }), invalidated);
      EXPECT_EQ(error_of([&] { rt.synchronize_stream(each); }), invalidated);
      EXPECT_EQ(error_of([&] { rt.read(each, x); }), invalidated);
      EXPECT_EQ(error_of([&] { rt.begin_capture(each); }), invalidated);
    }
    EXPECT_EQ(error_of([&] { rt.wait(other, e); }), invalidated);
    EXPECT_FALSE(rt.capturing(other));
    EXPECT_EQ(error_of([&] { rt.end_capture(t); }), invalidated);
    EXPECT_EQ(error_of([&] { rt.end_capture(s); }), invalidated);
    for (const StreamId each : {s, t}) {
      EXPECT_FALSE(rt.capturing(each));
      rt.launch(each, AddTo{x, 3});
    }
    rt.begin_capture(t);
    rt.launch(t, AddTo{x, 4});
    rt.launch_graph(s, rt.end_capture(t));
  });
  EXPECT_TRUE(holds(world, 0, x, 3 + 3 + 4));
}

// rule 5: every graph involved, and no other
TEST_P(CaptureTest, UnrelatedCaptureStaysValid) {
  World world(options());
  world.run([](Runtime& rt) {
    const View<float> x = floats(rt, 4);
    const StreamId s = rt.create_stream("s"), t = rt.create_stream("t");
    rt.begin_capture(s);
    rt.begin_capture(t);
    EXPECT_EQ(error_of([&] { rt.read(s, x); }), Error::stream_capture_unsupported);
    EXPECT_NE(rt.end_capture(t), 0);
    EXPECT_EQ(error_of([&] { rt.end_capture(s); }), Error::stream_capture_invalidated);
  });
}

// rule 5: a host read while capturing
TEST_P(CaptureTest, HostReadIsError900AndInvalidates) {
  World world(options());
  world.run([](Runtime& rt) {
    const View<float> x = floats(rt, 1);
    const StreamId s = rt.create_stream("s");
    rt.begin_capture(s);
    std::string text;
    EXPECT_EQ(static_cast<int>(error_of([&] { rt.read(s, x); }, &text)), 900);
    EXPECT_NE(text.find("cudaErrorStreamCaptureUnsupported"), std::string::npos) << text;
    EXPECT_EQ(static_cast<int>(error_of([&] { rt.end_capture(s); }, &text)), 901);
    EXPECT_NE(text.find("cudaErrorStreamCaptureInvalidated"), std::string::npos) << text;
    EXPECT_EQ(rt.read(s, x).value, 0.0);
  });
}

// rule 5: a graph inside a capture is not offered
TEST_P(CaptureTest, GraphLaunchInsideACaptureIsUnsupported) {
  World world(options());
  world.run([](Runtime& rt) {
    const StreamId s = rt.create_stream("s");
    rt.begin_capture(s);
    const GraphId graph = rt.end_capture(s);
    rt.begin_capture(s);
    EXPECT_EQ(error_of([&] { rt.launch_graph(s, graph); }), Error::stream_capture_unsupported);
    EXPECT_EQ(error_of([&] { rt.end_capture(s); }), Error::stream_capture_invalidated);
  });
}

// rule 5: allocation in a capture that is not relaxed
TEST_P(CaptureTest, AllocationAndReleaseInvalidate) {
  World world(options());
  world.run([](Runtime& rt) {
    const View<float> x = floats(rt, 4);
    const StreamId s = rt.create_stream("s");
    rt.begin_capture(s);
    EXPECT_EQ(error_of([&] { floats(rt, 4); }), Error::stream_capture_unsupported);
    EXPECT_EQ(error_of([&] { rt.end_capture(s); }), Error::stream_capture_invalidated);
    rt.begin_capture(s);
    EXPECT_EQ(error_of([&] { rt.release(x.buffer); }), Error::stream_capture_unsupported);
    EXPECT_EQ(error_of([&] { rt.end_capture(s); }), Error::stream_capture_invalidated);
    rt.begin_capture(s, CaptureMode::relaxed);
    rt.release(floats(rt, 4).buffer);
    EXPECT_NE(rt.end_capture(s), 0);
    rt.launch(s, SetTo{x, 1});
  });
}

// rule 7
TEST_P(CaptureTest, NothingExecutesDuringCapture) {
  World world(options());
  int host_runs = 0;
  View<float> x;
  world.run([&](Runtime& rt) {
    x = floats(rt, 4);
    const StreamId s = rt.create_stream("s"), reader = rt.create_stream("reader");
    const View<float> flag = floats(rt, 1);
    rt.begin_capture(s);
    rt.launch(s, AddTo{x, 1});
    ++host_runs;
    rt.launch(reader, PoisonIf{x, flag, 1});
    EXPECT_FALSE(rt.read(reader, flag).flagged());
    const GraphId graph = rt.end_capture(s);
    rt.launch(reader, PoisonIf{x, flag, 1});
    EXPECT_FALSE(rt.read(reader, flag).flagged()) << "not at the end of the capture either";
    for (int i = 0; i < 3; ++i) rt.launch_graph(s, graph);
  });
  EXPECT_TRUE(holds(world, 0, x, 3));
  EXPECT_EQ(host_runs, 1);
}

// rule 8
TEST_P(CaptureTest, StreamThatWasNotForkedExecutesNormally) {
  World world(options());
  View<float> x, y;
  world.run([&](Runtime& rt) {
    x = floats(rt, 4), y = floats(rt, 4);
    const StreamId s = rt.create_stream("s"), other = rt.create_stream("other");
    rt.begin_capture(s);
    rt.launch(s, AddTo{x, 1});
    rt.launch(other, AddTo{y, 1});
    rt.synchronize_stream(other);
    const GraphId graph = rt.end_capture(s);
    rt.launch_graph(s, graph);
    rt.launch_graph(s, graph);
  });
  EXPECT_TRUE(holds(world, 0, x, 2));
  EXPECT_TRUE(holds(world, 0, y, 1));
  EXPECT_EQ(world.graphs(0).at(0)->nodes.size(), 1u);
}

TEST_P(CaptureTest, UnknownHandlesAreErrors) {
  World world(options());
  world.run([](Runtime& rt) {
    const Error handle = Error::invalid_resource_handle;
    const StreamId none = 99;
    EXPECT_EQ(error_of([&] { rt.begin_capture(none); }), handle);
    EXPECT_EQ(error_of([&] { rt.end_capture(none); }), handle);
    EXPECT_EQ(error_of([&] { rt.synchronize_stream(none); }), handle);
    EXPECT_EQ(error_of([&] { static_cast<void>(rt.capturing(none)); }), handle);
    EXPECT_EQ(error_of([&] { rt.record(none, 0); }), handle);
    EXPECT_EQ(error_of([&] { rt.wait(0, none); }), handle);
    EXPECT_EQ(error_of([&] { rt.query(none); }), handle);
    EXPECT_EQ(error_of([&] { rt.launch_graph(0, 0); }), Error::invalid_value);
    EXPECT_EQ(error_of([&] { rt.launch_graph(0, 7); }), Error::invalid_value);
    EXPECT_EQ(error_of([&] { rt.destroy_graph(7); }), Error::invalid_value);
  });
}

TEST(ErrorNames, AreThoseOfCudaAndNccl) {
  const std::pair<Error, const char*> names[] = {
      {Error{1}, "cudaErrorInvalidValue"},
      {Error{400}, "cudaErrorInvalidResourceHandle"},
      {Error{401}, "cudaErrorIllegalState"},
      {Error{700}, "cudaErrorIllegalAddress"},
      {Error{900}, "cudaErrorStreamCaptureUnsupported"},
      {Error{901}, "cudaErrorStreamCaptureInvalidated"},
      {Error{902}, "cudaErrorStreamCaptureMerge"},
      {Error{903}, "cudaErrorStreamCaptureUnmatched"},
      {Error{904}, "cudaErrorStreamCaptureUnjoined"},
      {Error{905}, "cudaErrorStreamCaptureIsolation"},
      {Error{906}, "cudaErrorStreamCaptureImplicit"},
      {Error{907}, "cudaErrorCapturedEvent"},
      {Error{908}, "cudaErrorStreamCaptureWrongThread"},
      {Error::nccl_invalid_usage, "ncclInvalidUsage"},
  };
  for (const auto& [error, name] : names) EXPECT_STREQ(error_name(error), name);
}

}  // namespace
}  // namespace gatherfuzz
