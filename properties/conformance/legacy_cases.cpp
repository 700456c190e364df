// The legacy stream, which orders itself with every blocking stream: rule 22.
#include "properties/conformance/trial.h"

namespace gatherfuzz {

namespace {

constexpr Error kImplicit = Error::stream_capture_implicit;
constexpr Error kInvalidated = Error::stream_capture_invalidated;

void legacy_beside_non_blocking(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s");
  rt.begin_capture(s);
  rt.launch(0, AddTo{x, 1});
  t.is(false, "the legacy stream captures", rt.capturing(0));
  t.succeeds("the end", [&] { rt.end_capture(s); });
  t.holds(1, "x", 0, x);
}

void legacy_beside_blocking(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s", StreamKind::blocking);
  rt.begin_capture(s);
  t.fails(kImplicit, "a launch on the legacy stream", [&] { rt.launch(0, AddTo{x, 1}); });
  t.fails(kInvalidated, "the end", [&] { rt.end_capture(s); });
  rt.launch(0, AddTo{x, 2});
  t.holds(2, "x", 0, x);
}

void asking_the_legacy_stream(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s", StreamKind::blocking);
  rt.begin_capture(s);
  t.fails(kImplicit, "whether the legacy stream captures", [&] { static_cast<void>(rt.capturing(0)); });
  t.succeeds("a launch on the capturing stream", [&] { rt.launch(s, AddTo{x, 1}); });
  GraphId graph = 0;
  t.succeeds("the end", [&] { graph = rt.end_capture(s); });
  rt.launch_graph(s, graph);
  t.holds(1, "x", s, x);
}

void legacy_cannot_join(Trial& t) {
  Runtime& rt = t.rt;
  const StreamId s = rt.create_stream("s");
  const EventId e = rt.create_event();
  rt.begin_capture(s);
  rt.record(e, s);
  t.fails(kImplicit, "wait of the legacy stream for a captured event", [&] { rt.wait(0, e); });
  t.fails(kInvalidated, "the end", [&] { rt.end_capture(s); });
}

// The legacy stream waits for blocking streams and they for it.
void legacy_orders_blocking(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId a = rt.create_stream("a", StreamKind::blocking),
                 b = rt.create_stream("b", StreamKind::blocking);
  rt.launch(a, SetTo{x, 1});
  rt.launch(0, TripleAdd{x, x, 1});
  rt.launch(b, TripleAdd{x, x, 2});
  rt.synchronize_stream(b);
  t.holds(14, "x", b, x);
}

void legacy_and_non_blocking(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s");
  rt.launch(s, SetTo{x, 1});
  rt.launch(0, SetTo{x, 2});
  t.ends_with_any({1, 2}, "x, by two streams that nothing orders", x);
}

// A graph launched into the legacy stream is ordered as any work there.
void graph_in_the_legacy_stream(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s", StreamKind::blocking);
  rt.begin_capture(s);
  rt.launch(s, TripleAdd{x, x, 1});
  const GraphId graph = rt.end_capture(s);
  rt.launch(s, SetTo{x, 1});
  rt.launch_graph(0, graph);
  rt.launch(s, TripleAdd{x, x, 2});
  t.holds(14, "x", s, x);
}

// The host's wait is no work of the stream, so it does not wait for what the legacy stream holds back.
void host_waits_beside_legacy(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s", StreamKind::blocking), other = rt.create_stream("other");
  rt.launch(0, SetTo{x, 1});
  rt.synchronize_stream(s);
  rt.launch(other, SetTo{x, 2});
  t.ends_with_any({1, 2}, "x, after the wait for an idle blocking stream", x);
}

void wait_beside_legacy(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s", StreamKind::blocking), other = rt.create_stream("other");
  const EventId e = rt.create_event();
  rt.launch(0, SetTo{x, 1});
  rt.record(e, other);
  rt.wait(s, e);
  rt.synchronize_stream(s);
  rt.launch(other, SetTo{x, 2});
  t.ends_with_any({1, 2}, "x, after a blocking stream's wait for a complete event", x);
}

void record_beside_legacy(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s", StreamKind::blocking), other = rt.create_stream("other");
  const EventId e = rt.create_event();
  rt.launch(0, SetTo{x, 1});
  rt.record(e, s);
  rt.synchronize(e);
  rt.launch(other, SetTo{x, 2});
  t.ends_with(2, "x, after the wait for a record in a blocking stream", x);
}

void host_waits_for_legacy(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s", StreamKind::blocking), other = rt.create_stream("other");
  rt.launch(s, SetTo{x, 1});
  rt.synchronize_stream(0);
  rt.launch(other, SetTo{x, 2});
  t.ends_with(2, "x, after the wait for the legacy stream", x);
}

void record_in_legacy(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s", StreamKind::blocking), other = rt.create_stream("other");
  const EventId e = rt.create_event();
  rt.launch(s, SetTo{x, 1});
  rt.record(e, 0);
  rt.synchronize(e);
  rt.launch(other, SetTo{x, 2});
  t.ends_with(2, "x, after the wait for a record in the legacy stream", x);
}

}  // namespace

std::span<const Case> legacy_cases() {
  static constexpr Case kCases[] = {
      {"rule 22", "the legacy stream beside a capture of a non-blocking stream", legacy_beside_non_blocking},
      {"rule 22", "the legacy stream beside a capture of a blocking stream", legacy_beside_blocking},
      {"rule 22", "asking the legacy stream invalidates nothing", asking_the_legacy_stream},
      {"rule 22", "the legacy stream cannot join a capture", legacy_cannot_join, Case::Kind::same, 1,
       "error 906 and not 900"},
      {"rule 22", "the legacy stream and blocking streams order each other", legacy_orders_blocking},
      {"rule 22", "the legacy stream and non-blocking streams do not", legacy_and_non_blocking},
      {"rule 22", "a graph in the legacy stream is ordered with blocking streams",
       graph_in_the_legacy_stream},
      {"rule 22", "the host's wait for a blocking stream is no work in it", host_waits_beside_legacy,
       Case::Kind::same, 1, "the simulator made it wait for the legacy stream"},
      {"rule 22", "nor is a wait for a complete event", wait_beside_legacy, Case::Kind::same, 1,
       "the simulator made it wait for the legacy stream"},
      {"rule 22", "a record in a blocking stream follows the legacy stream", record_beside_legacy},
      {"rule 22", "the host's wait for the legacy stream and blocking streams", host_waits_for_legacy},
      {"rule 22", "a record in the legacy stream follows blocking streams", record_in_legacy},
  };
  return kCases;
}

}  // namespace gatherfuzz
