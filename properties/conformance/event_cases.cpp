// Events in captures: rules 15 to 20.
#include "properties/conformance/trial.h"

namespace gatherfuzz {

namespace {

constexpr Error kInvalidated = Error::stream_capture_invalidated;

void record_is_not_real(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value(), y = t.value();
  const StreamId s = rt.create_stream("s"), side = rt.create_stream("side");
  const EventId early = rt.create_event(), join = rt.create_event();
  rt.begin_capture(s);
  rt.launch(s, SetTo{x, 1});
  rt.record(early, s);
  rt.launch(s, SetTo{x, 2});  // not in what `early` stands for
  rt.wait(side, early);
  rt.launch(side, TripleAdd{x, y, 0});
  rt.record(join, side);
  rt.wait(s, join);
  const GraphId graph = rt.end_capture(s);
  rt.launch_graph(s, graph);
  t.ends_with_any({3, 6}, "y, by a read beside the write after the record", y);
}

void recorded_again(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s"), side = rt.create_stream("side");
  const EventId e = rt.create_event();
  rt.begin_capture(s);
  rt.record(e, s);
  rt.launch(s, SetTo{x, 1});
  rt.record(e, s);  // the latest record counts
  rt.wait(side, e);
  rt.launch(side, TripleAdd{x, x, 1});
  rt.record(e, side);
  rt.wait(s, e);
  const GraphId graph = rt.end_capture(s);
  rt.launch_graph(s, graph);
  t.holds(4, "x", s, x);
}

void pulled_in(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value(), y = t.value();
  const StreamId s = rt.create_stream("s"), side = rt.create_stream("side");
  const EventId fork = rt.create_event(), join = rt.create_event();
  rt.launch(side, SetTo{y, 9});
  rt.begin_capture(s);
  rt.launch(s, AddTo{x, 1});
  rt.record(fork, s);
  t.is(false, "the other stream captures before its wait", rt.capturing(side));
  rt.wait(side, fork);
  t.is(true, "the other stream captures after its wait", rt.capturing(side));
  rt.launch(side, TripleAdd{x, y, 0});
  rt.record(join, side);
  rt.wait(s, join);
  const GraphId graph = rt.end_capture(s);
  t.is(false, "the other stream captures after the end", rt.capturing(side));
  t.holds(9, "y before the replay", side, y);
  rt.launch_graph(side, graph);
  t.holds(3, "y", side, y);
}

void event_from_outside(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s"), other = rt.create_stream("other");
  const EventId e = rt.create_event();
  rt.launch(other, AddTo{x, 1});
  rt.record(e, other);
  rt.begin_capture(s);
  t.fails(Error::stream_capture_isolation, "wait for an event from outside", [&] { rt.wait(s, e); });
  t.fails(kInvalidated, "the end", [&] { rt.end_capture(s); });
  rt.wait(s, e);
  t.holds(1, "x", s, x);
}

void unrecorded_event(Trial& t) {
  Runtime& rt = t.rt;
  const StreamId s = rt.create_stream("s");
  const EventId e = rt.create_event();
  rt.begin_capture(s);
  t.succeeds("wait for an event that was never recorded", [&] { rt.wait(s, e); });
  t.succeeds("the end", [&] { rt.end_capture(s); });
}

void merge(Trial& t) {
  Runtime& rt = t.rt;
  const StreamId s = rt.create_stream("s"), other = rt.create_stream("other");
  const EventId e = rt.create_event();
  rt.begin_capture(s);
  rt.begin_capture(other);
  rt.record(e, s);
  t.fails(Error::stream_capture_merge, "wait for another capture's event", [&] { rt.wait(other, e); });
  t.fails(kInvalidated, "the end of the one", [&] { rt.end_capture(s); });
  t.fails(kInvalidated, "the end of the other", [&] { rt.end_capture(other); });
}

void own_and_event(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value(), y = t.value();
  const StreamId s = rt.create_stream("s"), side = rt.create_stream("side");
  const EventId fork = rt.create_event(), late = rt.create_event(), join = rt.create_event();
  rt.begin_capture(s);
  rt.record(fork, s);
  rt.wait(side, fork);
  rt.launch(side, SetTo{y, 2});
  rt.launch(s, SetTo{x, 1});
  rt.record(late, s);
  rt.wait(side, late);
  rt.launch(side, TripleAdd{y, y, 1});  // follows its own item
  rt.launch(side, TripleAdd{x, x, 2});  // and the event's
  rt.record(join, side);
  rt.wait(s, join);
  const GraphId graph = rt.end_capture(s);
  rt.launch_graph(s, graph);
  t.holds(5, "x", s, x);
  t.holds(7, "y", s, y);
}

void as_if_never_enqueued(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value(), y = t.value();
  const StreamId s = rt.create_stream("s"), side = rt.create_stream("side");
  const EventId fork = rt.create_event(), join = rt.create_event();
  rt.launch(side, SetTo{y, 1});
  rt.begin_capture(s);
  rt.launch(s, AddTo{x, 1});
  rt.record(fork, s);
  rt.wait(side, fork);
  rt.launch(side, AddTo{x, 1});
  rt.record(join, side);
  rt.wait(s, join);
  rt.end_capture(s);
  rt.launch(side, TripleAdd{y, y, 1});
  t.holds(4, "y, by the next op after the last before the capture", side, y);
  t.holds(0, "x", s, x);
}

// The wait inside a capture waits at replay for nothing that was enqueued before it.
void earlier_work_is_no_part(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s"), side = rt.create_stream("side"),
                 third = rt.create_stream("third");
  const EventId fork = rt.create_event(), join = rt.create_event();
  rt.launch(side, SetTo{x, 1});  // before the capture, on the stream that is pulled in
  rt.begin_capture(s);
  rt.record(fork, s);
  rt.wait(side, fork);
  rt.launch(side, SetTo{x, 2});
  rt.record(join, side);
  rt.wait(s, join);
  const GraphId graph = rt.end_capture(s);
  rt.launch_graph(third, graph);
  t.ends_with_any({1, 2}, "x, by a replay that nothing orders after the earlier work", x);
}

void captured_event(Trial& t) {
  Runtime& rt = t.rt;
  const StreamId s = rt.create_stream("s");
  const EventId e = rt.create_event();
  for (const bool query : {true, false}) {
    const auto use = [&] { query ? static_cast<void>(rt.query(e)) : rt.synchronize(e); };
    const std::string what = query ? "query" : "synchronization";
    rt.begin_capture(s);
    rt.record(e, s);
    t.fails(Error::captured_event, what + " during the capture", use);
    t.fails(kInvalidated, "the end", [&] { rt.end_capture(s); });
    t.fails(Error::invalid_value, what + " after the end", use);
  }
}

void captured_event_of_a_good_capture(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s"), other = rt.create_stream("other");
  const EventId e = rt.create_event();
  rt.begin_capture(s);
  rt.launch(s, AddTo{x, 1});
  rt.record(e, s);
  const GraphId graph = rt.end_capture(s);
  t.fails(Error::invalid_value, "query", [&] { rt.query(e); });
  t.fails(Error::invalid_value, "synchronization", [&] { rt.synchronize(e); });
  t.fails(Error::invalid_value, "wait of a stream", [&] { rt.wait(other, e); });
  rt.launch_graph(s, graph);
  rt.record(e, s);
  t.succeeds("synchronization once it is recorded again", [&] { rt.synchronize(e); });
  t.is(true, "the event is complete", rt.query(e));
  t.holds(1, "x", s, x);
}

void wait_in_a_capture_for_an_ended_one(Trial& t) {
  Runtime& rt = t.rt;
  const StreamId s = rt.create_stream("s");
  const EventId e = rt.create_event();
  rt.begin_capture(s);
  rt.record(e, s);
  rt.end_capture(s);
  rt.begin_capture(s);
  t.fails(Error::invalid_value, "wait", [&] { rt.wait(s, e); });
  t.fails(kInvalidated, "the end", [&] { rt.end_capture(s); });
}

}  // namespace

std::span<const Case> event_cases() {
  static constexpr Case kCases[] = {
      {"rule 15", "a record in a capture stands for what the stream has captured so far", record_is_not_real},
      {"rule 15", "an event recorded again stands for the latest record", recorded_again},
      {"rule 16", "a wait pulls a stream into the capture", pulled_in},
      {"rule 17", "a captured stream cannot wait for an event from outside", event_from_outside},
      {"rule 17", "an event that was never recorded is no event from outside", unrecorded_event},
      {"rule 18", "a wait cannot join two captures", merge},
      {"rule 19", "a captured op follows its stream's own items and the event's", own_and_event},
      {"rule 19", "after a capture a stream goes on as if nothing had been captured", as_if_never_enqueued},
      {"rule 19", "work from before the capture is no part of the graph", earlier_work_is_no_part},
      {"rule 20", "a captured event can be neither asked nor waited for by the host", captured_event},
      {"rule 20", "the same once its capture has ended well", captured_event_of_a_good_capture,
       Case::Kind::same, 1,
       "error 907 lasts as long as the capture; then the event is invalid (1) until it is recorded again"},
      {"rule 20", "nor waited for in the next capture", wait_in_a_capture_for_an_ended_one, Case::Kind::same,
       1, "error 1 and not 907"},
  };
  return kCases;
}

}  // namespace gatherfuzz
