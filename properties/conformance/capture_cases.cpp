// The life of a capture: rules 1 to 8.
#include "properties/conformance/trial.h"

namespace gatherfuzz {

namespace {

constexpr Error kUnsupported = Error::stream_capture_unsupported;
constexpr Error kInvalidated = Error::stream_capture_invalidated;
constexpr Case::Kind kSame = Case::Kind::same;
constexpr Error kUnjoined = Error::stream_capture_unjoined;

// What forks from the origin stream, and comes back.
struct Fork {
  explicit Fork(Runtime& rt)
      : origin(rt.create_stream("origin")),
        side(rt.create_stream("side")),
        fork(rt.create_event()),
        join(rt.create_event()) {}

  void out(Runtime& rt) const {
    rt.record(fork, origin);
    rt.wait(side, fork);
  }
  void back(Runtime& rt) const {
    rt.record(join, side);
    rt.wait(origin, join);
  }

  StreamId origin, side;
  EventId fork, join;
};

void begin_on_legacy(Trial& t) {
  t.fails(kUnsupported, "begin on the legacy stream", [&] { t.rt.begin_capture(0); });
  t.is(false, "the legacy stream captures", t.rt.capturing(0));
}

void begin_on_legacy_beside_a_capture(Trial& t) {
  Runtime& rt = t.rt;
  const StreamId s = rt.create_stream("s", StreamKind::blocking);
  rt.begin_capture(s);
  t.fails(Error::stream_capture_implicit, "begin on the legacy stream", [&] { rt.begin_capture(0); });
  t.fails(kInvalidated, "the end of the blocking stream's capture", [&] { rt.end_capture(s); });
}

void begin_twice(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s");
  rt.begin_capture(s);
  rt.launch(s, AddTo{x, 1});
  t.fails(Error::illegal_state, "begin on a capturing stream", [&] { rt.begin_capture(s); });
  t.is(true, "the capture goes on", rt.capturing(s));
  const GraphId graph = rt.end_capture(s);
  t.fails(Error::illegal_state, "end without a capture", [&] { rt.end_capture(s); });
  rt.launch_graph(s, graph);
  t.holds(1, "x after one replay", s, x);
}

void end_elsewhere(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const Fork f(rt);
  rt.begin_capture(f.origin);
  f.out(rt);
  rt.launch(f.side, AddTo{x, 1});
  t.fails(Error::stream_capture_unmatched, "end on the forked stream", [&] { rt.end_capture(f.side); });
  t.fails(kInvalidated, "end on the origin, afterwards", [&] { rt.end_capture(f.origin); });
  t.is(false, "the origin captures", rt.capturing(f.origin));
  t.is(false, "the forked stream captures", rt.capturing(f.side));
}

void end_by_another_thread(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s");
  for (const CaptureMode mode : {CaptureMode::global, CaptureMode::thread_local_}) {
    rt.begin_capture(s, mode);
    rt.launch(s, AddTo{x, 1});
    rt.on_host_thread(1);
    t.fails(Error::stream_capture_wrong_thread, "end by another thread", [&] { rt.end_capture(s); });
    rt.on_host_thread(0);
    t.is(false, "the stream captures afterwards", rt.capturing(s));
    t.fails(Error::illegal_state, "end by the thread that began", [&] { rt.end_capture(s); });
  }
  rt.launch(s, AddTo{x, 10});
  t.holds(10, "x", s, x);
}

void end_by_another_thread_when_invalidated(Trial& t) {
  Runtime& rt = t.rt;
  const StreamId s = rt.create_stream("s");
  rt.begin_capture(s);
  t.fails(kUnsupported, "synchronization", [&] { rt.synchronize_stream(s); });
  rt.on_host_thread(1);
  t.fails(kInvalidated, "end by another thread", [&] { rt.end_capture(s); });
  rt.on_host_thread(0);
  t.is(false, "the stream captures afterwards", rt.capturing(s));
}

void end_by_another_thread_when_relaxed(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s");
  rt.begin_capture(s, CaptureMode::relaxed);
  rt.on_host_thread(1);
  rt.launch(s, AddTo{x, 1});
  GraphId graph = 0;
  t.succeeds("end by another thread", [&] { graph = rt.end_capture(s); });
  rt.on_host_thread(0);
  rt.launch_graph(s, graph);
  t.holds(1, "x", s, x);
}

void unjoined_work(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value(), y = t.value();
  const Fork f(rt);
  rt.begin_capture(f.origin);
  rt.launch(f.origin, AddTo{x, 1});
  f.out(rt);
  rt.launch(f.side, AddTo{y, 1});
  t.fails(kUnjoined, "end with unjoined work", [&] { rt.end_capture(f.origin); });
  t.is(false, "the origin captures", rt.capturing(f.origin));
  t.is(false, "the forked stream captures", rt.capturing(f.side));
  rt.launch(f.side, AddTo{y, 10});
  t.holds(10, "y, by work after the failed capture", f.side, y);
}

void work_after_the_join(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const Fork f(rt);
  rt.begin_capture(f.origin);
  f.out(rt);
  rt.launch(f.side, AddTo{x, 1});
  f.back(rt);
  rt.launch(f.side, AddTo{x, 1});
  t.fails(kUnjoined, "end with work after the join", [&] { rt.end_capture(f.origin); });
}

void joined_through_a_third_stream(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const Fork f(rt);
  const StreamId third = rt.create_stream("third");
  const EventId hop = rt.create_event(), home = rt.create_event();
  rt.begin_capture(f.origin);
  f.out(rt);
  rt.launch(f.side, AddTo{x, 1});
  rt.record(hop, f.side);
  rt.wait(third, hop);
  rt.launch(third, TripleAdd{x, x, 1});
  rt.record(home, third);
  rt.wait(f.origin, home);
  GraphId graph = 0;
  t.succeeds("end, joined through a third stream", [&] { graph = rt.end_capture(f.origin); });
  rt.launch_graph(f.origin, graph);
  t.holds(4, "x", f.origin, x);
}

void fork_without_work(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const Fork f(rt);
  rt.begin_capture(f.origin);
  rt.launch(f.origin, AddTo{x, 1});
  f.out(rt);
  t.is(true, "the forked stream captures", rt.capturing(f.side));
  t.succeeds("end with a fork that did nothing", [&] { rt.end_capture(f.origin); });
  t.is(false, "the forked stream captures", rt.capturing(f.side));
}

void fork_of_nothing(Trial& t) {
  Runtime& rt = t.rt;
  const Fork f(rt);
  rt.begin_capture(f.origin);
  f.out(rt);
  t.is(true, "the forked stream captures", rt.capturing(f.side));
  t.succeeds("end of an empty capture with a fork", [&] { rt.end_capture(f.origin); });
}

// Every way to break a capture in turn.
void not_permitted(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const Fork f(rt);
  using Call = void (*)(Runtime&, const Fork&, const View<float>&);
  const std::pair<const char*, Call> calls[] = {
      {"synchronization of the origin",
       [](Runtime& r, const Fork& k, const View<float>&) { r.synchronize_stream(k.origin); }},
      {"synchronization of the fork",
       [](Runtime& r, const Fork& k, const View<float>&) { r.synchronize_stream(k.side); }},
      {"a host read", [](Runtime& r, const Fork& k, const View<float>& v) { r.read(k.origin, v); }},
      {"an allocation",
       [](Runtime& r, const Fork&, const View<float>&) { r.allocate("more", 4, Fill::zero); }},
      {"a release", [](Runtime& r, const Fork&, const View<float>& v) { r.release(v.buffer); }},
  };
  for (const auto& [name, call] : calls) {
    rt.begin_capture(f.origin);
    rt.launch(f.origin, AddTo{x, 1});
    f.out(rt);
    t.fails(kUnsupported, name, [&, call = call] { call(rt, f, x); });
    t.fails(kInvalidated, std::string("end after ") + name, [&] { rt.end_capture(f.origin); });
    t.is(false, std::string("the fork captures after ") + name, rt.capturing(f.side));
  }
  t.holds(0, "x, which nothing wrote", f.origin, x);
}

void unrelated_capture(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s"), other = rt.create_stream("other");
  rt.begin_capture(s, CaptureMode::relaxed);
  rt.begin_capture(other, CaptureMode::relaxed);
  rt.launch(other, AddTo{x, 1});
  t.fails(kUnsupported, "synchronization of s", [&] { rt.synchronize_stream(s); });
  t.fails(kInvalidated, "end of the invalidated one", [&] { rt.end_capture(s); });
  GraphId graph = 0;
  t.succeeds("end of the other capture", [&] { graph = rt.end_capture(other); });
  rt.launch_graph(s, graph);
  t.holds(1, "x", s, x);
}

void invalidated_until_the_end(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const Fork f(rt);
  const StreamId other = rt.create_stream("other");
  const EventId e = rt.create_event();
  rt.begin_capture(other);
  const GraphId graph = rt.end_capture(other);
  rt.begin_capture(f.origin);
  rt.launch(f.origin, AddTo{x, 1});
  f.out(rt);
  t.fails(kUnsupported, "synchronization of the fork", [&] { rt.synchronize_stream(f.side); });
  for (const auto& [name, s] : {std::pair("origin", f.origin), std::pair("fork", f.side)}) {
    const std::string on = std::string(" on the ") + name;
    t.is(true, "capturing" + on, rt.capturing(s));
    t.fails(kInvalidated, "launch" + on, [&, s = s] { rt.launch(s, AddTo{x, 2}); });
    t.fails(kInvalidated, "record" + on, [&, s = s] { rt.record(e, s); });
    t.fails(kInvalidated, "wait" + on, [&, s = s] { rt.wait(s, f.fork); });
    t.fails(kUnsupported, "synchronization" + on, [&, s = s] { rt.synchronize_stream(s); });
    t.fails(kUnsupported, "launch of a graph" + on, [&, s = s] { rt.launch_graph(s, graph); });
    t.fails(Error::illegal_state, "begin" + on, [&, s = s] { rt.begin_capture(s); });
  }
  t.fails(Error::invalid_value, "wait of a third stream", [&] { rt.wait(other, f.fork); });
  t.is(false, "the third stream captures", rt.capturing(other));
  t.fails(Error::invalid_value, "query of an event of the capture", [&] { rt.query(f.fork); });
  t.fails(Error::stream_capture_unmatched, "end on the fork", [&] { rt.end_capture(f.side); });
  t.fails(kInvalidated, "end on the origin", [&] { rt.end_capture(f.origin); });
}

void usable_again(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const Fork f(rt);
  rt.begin_capture(f.origin);
  f.out(rt);
  t.fails(kUnsupported, "synchronization of the fork", [&] { rt.synchronize_stream(f.side); });
  t.fails(kInvalidated, "end", [&] { rt.end_capture(f.origin); });
  rt.launch(f.origin, AddTo{x, 1});
  rt.synchronize_stream(f.origin);
  rt.launch(f.side, AddTo{x, 1});
  rt.synchronize_stream(f.side);
  rt.begin_capture(f.side);
  rt.launch(f.side, AddTo{x, 10});
  const GraphId graph = rt.end_capture(f.side);
  rt.launch_graph(f.origin, graph);
  t.holds(12, "x", f.origin, x);
}

void nothing_executes(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s"), reader = rt.create_stream("reader");
  int host_runs = 0;
  rt.begin_capture(s, CaptureMode::relaxed);
  rt.launch(s, AddTo{x, 1});
  ++host_runs;
  t.holds(0, "x during the capture", reader, x);
  const GraphId graph = rt.end_capture(s);
  t.holds(0, "x after the capture", s, x);
  for (int i = 0; i < 3; ++i) rt.launch_graph(s, graph);
  t.holds(3, "x after three replays", s, x);
  t.is(true, "the host code ran once", host_runs == 1);
}

void not_forked(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value(), y = t.value();
  const StreamId s = rt.create_stream("s"), other = rt.create_stream("other");
  rt.begin_capture(s, CaptureMode::relaxed);
  rt.launch(s, AddTo{x, 1});
  rt.launch(other, AddTo{y, 1});
  t.is(false, "the other stream captures", rt.capturing(other));
  t.holds(1, "y during the capture", other, y);
  const GraphId graph = rt.end_capture(s);
  rt.launch_graph(s, graph);
  rt.launch_graph(s, graph);
  t.holds(2, "x", s, x);
  t.holds(1, "y", other, y);
}

}  // namespace

std::span<const Case> capture_cases() {
  static constexpr Case kCases[] = {
      {"rule 1", "the legacy stream cannot begin a capture", begin_on_legacy},
      {"rule 1", "the legacy stream cannot begin one beside a blocking stream's",
       begin_on_legacy_beside_a_capture, kSame, 1,
       "error 906 and not 900: any use of the legacy stream is implicit"},
      {"rule 1", "a capturing stream cannot begin another", begin_twice},
      {"rule 2", "a capture ends on its origin stream", end_elsewhere},
      {"rule 3", "a capture is ended by the thread that began it", end_by_another_thread, kSame, 1,
       "the refused end also ends the capture, which is lost"},
      {"rule 3", "an invalidated capture says so to any thread", end_by_another_thread_when_invalidated},
      {"rule 3", "a relaxed capture is ended by any thread", end_by_another_thread_when_relaxed},
      {"rule 4", "work that was forked and not joined", unjoined_work},
      {"rule 4", "work after the join is not joined", work_after_the_join},
      {"rule 4", "joined through a third stream", joined_through_a_third_stream},
      {"rule 4", "a fork that does nothing needs no join", fork_without_work},
      {"rule 4", "a fork from an empty capture needs no join", fork_of_nothing},
      {"rule 5", "what is not permitted invalidates the capture", not_permitted},
      {"rule 5", "an unrelated capture stays valid", unrelated_capture},
      {"rule 6", "an invalidated capture until its end", invalidated_until_the_end, kSame, 1,
       "only launch, record and wait of its own streams say 901; synchronization and launch of a graph say "
       "900, begin "
       "401, end on another stream 903, and to all others its events are invalid (1)"},
      {"rule 6", "streams are usable again after the end", usable_again},
      {"rule 7", "nothing executes during a capture", nothing_executes},
      {"rule 8", "a stream that was not forked executes and is not captured", not_forked},
  };
  return kCases;
}

}  // namespace gatherfuzz
