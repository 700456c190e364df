// Streams and events outside of captures, and what the host waits for beside them: rules 21 and 24.
#include "properties/conformance/trial.h"

namespace gatherfuzz {

namespace {

constexpr Error kUnsupported = Error::stream_capture_unsupported;
constexpr Error kInvalidated = Error::stream_capture_invalidated;

void synchronize_capturing(Trial& t) {
  Runtime& rt = t.rt;
  const StreamId s = rt.create_stream("s");
  for (const CaptureMode mode : {CaptureMode::global, CaptureMode::thread_local_, CaptureMode::relaxed}) {
    rt.begin_capture(s, mode);
    t.fails(kUnsupported, "synchronization of the capturing stream", [&] { rt.synchronize_stream(s); });
    t.fails(kInvalidated, "the end", [&] { rt.end_capture(s); });
    t.succeeds("synchronization after the end", [&] { rt.synchronize_stream(s); });
  }
}

// It may wait for a capture that never executes, so it is prohibited whatever it concerns.
void synchronize_another(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s"), other = rt.create_stream("other");
  const EventId e = rt.create_event();
  rt.launch(other, AddTo{x, 1});
  rt.record(e, other);
  using Call = void (*)(Runtime&, StreamId, EventId, const View<float>&);
  const std::pair<const char*, Call> calls[] = {
      {"synchronization of another stream",
       [](Runtime& r, StreamId o, EventId, const View<float>&) { r.synchronize_stream(o); }},
      {"synchronization of an event",
       [](Runtime& r, StreamId, EventId v, const View<float>&) { r.synchronize(v); }},
      {"query of an event", [](Runtime& r, StreamId, EventId v, const View<float>&) { r.query(v); }},
      {"a host read from another stream",
       [](Runtime& r, StreamId o, EventId, const View<float>& v) { r.read(o, v); }},
  };
  for (const auto& [name, call] : calls)
    for (const CaptureMode mode : {CaptureMode::global, CaptureMode::thread_local_, CaptureMode::relaxed}) {
      const auto use = [&, call = call] { call(rt, other, e, x); };
      rt.begin_capture(s, mode);
      if (mode == CaptureMode::relaxed) {
        t.succeeds(std::string(name) + " during a relaxed capture", use);
        t.succeeds("the end", [&] { rt.end_capture(s); });
      } else {
        t.fails(kUnsupported, std::string(name) + " during a capture", use);
        t.fails(kInvalidated, "the end", [&] { rt.end_capture(s); });
      }
    }
}

void unrecorded_is_complete(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s");
  const EventId e = rt.create_event();
  rt.launch(s, AddTo{x, 1});
  t.is(true, "an event that was never recorded is complete", rt.query(e));
  t.succeeds("synchronization with it", [&] { rt.synchronize(e); });
  t.succeeds("wait for it", [&] { rt.wait(s, e); });
  rt.launch(s, TripleAdd{x, x, 0});
  t.holds(3, "x", s, x);
}

void synchronize_waits(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s"), other = rt.create_stream("other");
  const EventId e = rt.create_event();
  for (int i = 1; i <= 3; ++i) {
    rt.launch(s, AddTo{x, 1});
    rt.record(e, s);
    rt.synchronize(e);
    t.is(true, "the event is complete", rt.query(e));
    rt.launch(other, AddTo{x, 1});
    t.holds(2 * i, "x", other, x);
  }
}

// A wait binds to the latest record at its own time; later records do not move it.
void wait_binds(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value(), y = t.value();
  const StreamId s = rt.create_stream("s"), side = rt.create_stream("side");
  const EventId e = rt.create_event();
  rt.launch(s, SetTo{x, 1});
  rt.record(e, s);
  rt.wait(side, e);
  rt.launch(s, TripleAdd{x, y, 0});
  rt.record(e, s);
  rt.launch(side, AddTo{x, 1});  // follows the first record alone
  t.ends_with_any({3, 6}, "y, read beside the write that follows the first record", y);
}

void record_overwrites(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s"), side = rt.create_stream("side");
  const EventId e = rt.create_event();
  rt.record(e, s);
  rt.launch(s, SetTo{x, 1});
  rt.record(e, s);
  rt.wait(side, e);
  rt.launch(side, TripleAdd{x, x, 1});
  t.holds(4, "x", side, x);
}

void without_a_wait(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s"), side = rt.create_stream("side");
  rt.launch(s, SetTo{x, 1});
  rt.launch(side, SetTo{x, 2});
  t.ends_with_any({1, 2}, "x, by two streams that nothing orders", x);
}

// The host waits for one stream and goes on beside the other.
void host_waits_for_one_stream(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value(), y = t.value();
  const StreamId s = rt.create_stream("s"), other = rt.create_stream("other"),
                 third = rt.create_stream("third");
  const EventId e = rt.create_event();
  rt.launch(s, SetTo{x, 1});
  rt.launch(s, SetTo{y, 1});
  rt.record(e, other);
  rt.synchronize(e);
  rt.launch(other, SetTo{x, 2});
  rt.synchronize_stream(third);
  rt.launch(third, SetTo{y, 2});
  t.ends_with_any({1, 2}, "x, after the wait for an event of another stream", x);
  t.ends_with_any({1, 2}, "y, after the wait for another stream", y);
}

}  // namespace

std::span<const Case> stream_cases() {
  static constexpr Case kCases[] = {
      {"rule 21", "a capturing stream cannot be synchronized", synchronize_capturing},
      {"rule 21", "nor can anything else be waited for unless the capture is relaxed", synchronize_another,
       Case::Kind::same, 1,
       "every synchronization and question of the host is potentially unsafe, whatever it concerns"},
      {"rule 24", "an event that was never recorded is complete", unrecorded_is_complete},
      {"rule 24", "the host waits for what was recorded", synchronize_waits},
      {"rule 24", "a wait binds to the latest record at the time of the call", wait_binds},
      {"rule 24", "a record overwrites the one before", record_overwrites},
      {"rule 24", "waiting for one stream orders no other", host_waits_for_one_stream, Case::Kind::same, 1,
       "the simulator let all queues drain while a host waited, and so hid what the host does beside them"},
      {"rule 24", "without a wait nothing orders two streams", without_a_wait},
  };
  return kCases;
}

}  // namespace gatherfuzz
