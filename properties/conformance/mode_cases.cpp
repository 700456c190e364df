// Capture modes, and what host threads may do while a capture is under way: rules 11 to 14 and 27.
#include "properties/conformance/trial.h"

namespace gatherfuzz {

namespace {

constexpr Error kUnsupported = Error::stream_capture_unsupported;
constexpr Error kInvalidated = Error::stream_capture_invalidated;

void allocate(Runtime& rt) {
  rt.allocate("more", 4, Fill::zero);
}

// Thread 0 captures in `capture` mode; the thread `who`, in its own mode `mine`, allocates.
void allocation(Trial& t, CaptureMode capture, int who, CaptureMode mine, bool allowed) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s");
  rt.begin_capture(s, capture);
  rt.launch(s, AddTo{x, 1});
  rt.on_host_thread(who);
  const CaptureMode old = rt.exchange_capture_mode(mine);
  if (allowed) {
    t.succeeds("the allocation", [&] { allocate(rt); });
  } else {
    t.fails(kUnsupported, "the allocation", [&] { allocate(rt); });
  }
  rt.exchange_capture_mode(old);
  rt.on_host_thread(0);
  if (!allowed) {
    t.fails(kInvalidated, "the end of the capture", [&] { rt.end_capture(s); });
    return;
  }
  const GraphId graph = rt.end_capture(s);
  rt.launch_graph(s, graph);
  t.holds(1, "x", s, x);
}

void global_by_itself(Trial& t) {
  allocation(t, CaptureMode::global, 0, CaptureMode::global, false);
}
void thread_local_by_itself(Trial& t) {
  allocation(t, CaptureMode::thread_local_, 0, CaptureMode::global, false);
}
void relaxed_by_itself(Trial& t) {
  allocation(t, CaptureMode::relaxed, 0, CaptureMode::global, true);
}
void global_by_another(Trial& t) {
  allocation(t, CaptureMode::global, 1, CaptureMode::global, false);
}
void thread_local_by_another(Trial& t) {
  allocation(t, CaptureMode::thread_local_, 1, CaptureMode::global, true);
}
void relaxed_by_another(Trial& t) {
  allocation(t, CaptureMode::relaxed, 1, CaptureMode::global, true);
}

void thread_local_thread_by_itself(Trial& t) {
  allocation(t, CaptureMode::global, 0, CaptureMode::thread_local_, false);
}
void thread_local_thread_by_another(Trial& t) {
  allocation(t, CaptureMode::global, 1, CaptureMode::thread_local_, true);
}
void relaxed_thread_by_itself(Trial& t) {
  allocation(t, CaptureMode::global, 0, CaptureMode::relaxed, true);
}
void relaxed_thread_by_another(Trial& t) {
  allocation(t, CaptureMode::global, 1, CaptureMode::relaxed, true);
}

void relaxed_conflict(Trial& t) {
  Runtime& rt = t.rt;
  const StreamId s = rt.create_stream("s");
  const EventId e = rt.create_event();
  rt.exchange_capture_mode(CaptureMode::relaxed);
  rt.begin_capture(s, CaptureMode::relaxed);
  rt.record(e, s);
  t.fails(Error::captured_event, "query of a captured event", [&] { rt.query(e); });
  t.fails(kInvalidated, "the end of the capture", [&] { rt.end_capture(s); });
  rt.exchange_capture_mode(CaptureMode::global);
}

// The watchdog of a communication library asks for an event of its own while another thread captures.
void query_by_another(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s"), own = rt.create_stream("own");
  const EventId e = rt.create_event();
  rt.record(e, own);
  rt.synchronize(e);
  for (const auto& [name, capture, allowed] :
       {std::tuple("a global capture", CaptureMode::global, false),
        std::tuple("a thread-local capture", CaptureMode::thread_local_, true)}) {
    rt.begin_capture(s, capture);
    rt.launch(s, AddTo{x, 1});
    rt.on_host_thread(1);
    const std::string what = std::string("query during ") + name + " of another thread";
    if (allowed) {
      t.succeeds(what, [&] { rt.query(e); });
    } else {
      t.fails(kUnsupported, what, [&] { rt.query(e); });
    }
    rt.on_host_thread(0);
    if (allowed) {
      t.succeeds("the end", [&] { rt.end_capture(s); });
    } else {
      t.fails(kInvalidated, "the end", [&] { rt.end_capture(s); });
    }
  }
}

void exchange_is_a_stack(Trial& t) {
  Runtime& rt = t.rt;
  t.is(true, "a thread begins in global mode",
       rt.exchange_capture_mode(CaptureMode::relaxed) == CaptureMode::global);
  t.is(true, "the old mode comes back",
       rt.exchange_capture_mode(CaptureMode::thread_local_) == CaptureMode::relaxed);
  rt.on_host_thread(1);
  t.is(true, "another thread has its own",
       rt.exchange_capture_mode(CaptureMode::global) == CaptureMode::global);
  rt.on_host_thread(0);
  t.is(true, "which changes no other",
       rt.exchange_capture_mode(CaptureMode::global) == CaptureMode::thread_local_);
}

void two_captures_at_once(Trial& t) {
  Runtime& rt = t.rt;
  const StreamId s = rt.create_stream("s"), other = rt.create_stream("other");
  rt.begin_capture(s, CaptureMode::global);
  rt.on_host_thread(1);
  rt.begin_capture(other, CaptureMode::thread_local_);
  t.fails(kUnsupported, "an allocation of the second thread", [&] { allocate(rt); });
  t.fails(kInvalidated, "the end of its own capture", [&] { rt.end_capture(other); });
  rt.on_host_thread(0);
  t.fails(kInvalidated, "the end of the other thread's global capture", [&] { rt.end_capture(s); });
}

// The end of a capture instantiates the graph, which is prohibited while another capture lasts.
void instantiation(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s"), other = rt.create_stream("other");
  rt.begin_capture(s);
  rt.begin_capture(other);
  rt.launch(other, AddTo{x, 1});
  t.fails(kUnsupported, "the end of a capture during another", [&] { rt.end_capture(other); });
  t.is(false, "its stream captures", rt.capturing(other));
  t.fails(kInvalidated, "the end of the other", [&] { rt.end_capture(s); });
  rt.begin_capture(s, CaptureMode::relaxed);
  rt.begin_capture(other);
  rt.launch(other, AddTo{x, 1});
  GraphId graph = 0;
  t.succeeds("the end of a capture during a relaxed one", [&] { graph = rt.end_capture(other); });
  t.succeeds("the end of the relaxed one", [&] { rt.end_capture(s); });
  rt.launch_graph(s, graph);
  t.holds(1, "x", s, x);
}

void once_at_capture(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s");
  rt.begin_capture(s, CaptureMode::relaxed);
  const View<float> y = t.value();  // now, and not at replay
  rt.launch(s, AddTo{y, 1});
  rt.launch(s, TripleAdd{y, x, 0});
  const GraphId graph = rt.end_capture(s);
  rt.launch_graph(s, graph);
  rt.launch_graph(s, graph);
  t.holds(2, "y, which replays share", s, y);
  t.holds(6, "x", s, x);
}

}  // namespace

std::span<const Case> mode_cases() {
  static constexpr Case kCases[] = {
      {"rule 11", "allocation during the thread's own global capture", global_by_itself},
      {"rule 11", "allocation during the thread's own thread-local capture", thread_local_by_itself},
      {"rule 11", "allocation during the thread's own relaxed capture", relaxed_by_itself},
      {"rule 11", "allocation during another thread's global capture", global_by_another},
      {"rule 11", "allocation during another thread's thread-local capture", thread_local_by_another},
      {"rule 11", "allocation during another thread's relaxed capture", relaxed_by_another},
      {"rule 11", "one allocation breaks the captures of two threads", two_captures_at_once},
      {"rule 11", "query of an ordinary event during another thread's capture", query_by_another,
       Case::Kind::same, 1, "a question to an event is potentially unsafe, as allocation is"},
      {"rule 11", "instantiation during another capture of the thread", instantiation, Case::Kind::same, 1,
       "instantiation is potentially unsafe; it also invalidates the other capture"},
      {"rule 12", "a thread-local thread and its own capture", thread_local_thread_by_itself},
      {"rule 12", "a thread-local thread and another's global capture", thread_local_thread_by_another},
      {"rule 13", "a relaxed thread and its own global capture", relaxed_thread_by_itself},
      {"rule 13", "a relaxed thread and another's global capture", relaxed_thread_by_another},
      {"rule 13", "a relaxed thread and a call that conflicts", relaxed_conflict},
      {"rule 14", "the mode of a thread is exchanged", exchange_is_a_stack},
      {"rule 27", "an allocation in a relaxed capture happens once", once_at_capture},
  };
  return kCases;
}

}  // namespace gatherfuzz
