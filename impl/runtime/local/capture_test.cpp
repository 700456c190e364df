// What the simulator says of captures that cannot go on. Their rules are conformance cases
// (properties/conformance).
#include "impl/runtime/local/world_for_tests.h"

namespace gatherfuzz {
namespace {

class CaptureTest : public BothMemories {};
INSTANTIATE_TEST_SUITE_P(Memories, CaptureTest, kBothMemories, memory_name);

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
    EXPECT_EQ(error_of([&] { rt.on_host_thread(-1); }), Error::invalid_value);
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
