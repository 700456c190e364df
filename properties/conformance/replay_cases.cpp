// What a graph keeps, what it looks up at replay, and how its launches are ordered: rules 34 to 38; and
// graphs beside captures.
#include <thread>

#include "properties/conformance/trial.h"

namespace gatherfuzz {

namespace {

void scalars_are_frozen(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value(), y = t.value();
  const StreamId s = rt.create_stream("s");
  AddTo op{x, 1};
  rt.begin_capture(s);
  rt.launch(s, op);
  op.value = 100;
  static_cast<Operand&>(op.target) = y;
  const GraphId graph = rt.end_capture(s);
  rt.launch_graph(s, graph);
  rt.launch_graph(s, graph);
  t.holds(2, "x, at the captured address, by the captured scalar", s, x);
  t.holds(0, "y", s, y);
}

void content_is_read_at_replay(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value(), y = t.value();
  const StreamId s = rt.create_stream("s");
  rt.launch(s, SetTo{x, 1});
  rt.begin_capture(s);
  rt.launch(s, TripleAdd{x, y, 0});
  const GraphId graph = rt.end_capture(s);
  for (int value = 2; value < 5; ++value) {
    rt.launch(s, SetTo{x, value});
    rt.launch_graph(s, graph);
    t.holds(3 * value, "y", s, y);
  }
}

void replay_after_release(Trial& t, bool memory_again) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s");
  rt.begin_capture(s);
  rt.launch(s, AddTo{x, 1});
  const GraphId graph = rt.end_capture(s);
  rt.launch_graph(s, graph);
  rt.release(x.buffer);
  if (memory_again) rt.allocate_again(x.buffer, Fill::zero);
  t.fails(Error::illegal_address, "a replay", [&] { rt.launch_graph(s, graph); });
}

void released_memory(Trial& t) {
  replay_after_release(t, false);
}
void moved_memory(Trial& t) {
  replay_after_release(t, true);
}

// Work launched and graphs captured from then on use the new memory.
void memory_again(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value(), y = t.value();
  const StreamId s = rt.create_stream("s");
  rt.launch(s, SetTo{x, 7});
  t.fails(Error::invalid_value, "memory again for a buffer that has some",
          [&] { rt.allocate_again(x.buffer, Fill::zero); });
  rt.release(x.buffer);
  rt.allocate_again(x.buffer, Fill::zero);
  t.holds(0, "the new memory", s, x);
  rt.begin_capture(s);
  rt.launch(s, AddTo{x, 2});
  rt.launch(s, TripleAdd{x, y, 0});
  const GraphId graph = rt.end_capture(s);
  rt.launch_graph(s, graph);
  t.holds(6, "y", s, y);
}

// The prior work of the stream, the launch before, and one from another stream.
void launches_are_ordered(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s"), other = rt.create_stream("other");
  rt.begin_capture(s);
  rt.launch(s, TripleAdd{x, x, 1});
  rt.launch(s, TripleAdd{x, x, 2});
  const GraphId graph = rt.end_capture(s);
  rt.launch(s, SetTo{x, 1});
  rt.launch_graph(s, graph);      // 14
  rt.launch_graph(other, graph);  // 131, though no event orders it
  rt.launch(other, TripleAdd{x, x, 0});
  t.holds(393, "x", other, x);
}

void whole_graph(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value(), y = t.value();
  const StreamId s = rt.create_stream("s"), side = rt.create_stream("side");
  const EventId fork = rt.create_event(), join = rt.create_event();
  rt.begin_capture(s);
  rt.record(fork, s);
  rt.wait(side, fork);
  rt.launch(s, TripleAdd{x, x, 1});
  rt.launch(side, TripleAdd{y, y, 2});
  rt.record(join, side);
  rt.wait(s, join);
  const GraphId graph = rt.end_capture(s);
  rt.launch(s, SetTo{x, 1});
  rt.launch(s, SetTo{y, 1});
  rt.launch_graph(s, graph);
  rt.launch(s, TripleAdd{x, x, 0});
  rt.launch(s, TripleAdd{y, y, 0});
  t.holds(12, "x, by all branches between the work before and after", s, x);
  t.holds(15, "y", s, y);
}

void branches_are_not_ordered(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s"), side = rt.create_stream("side");
  const EventId fork = rt.create_event(), join = rt.create_event();
  rt.begin_capture(s);
  rt.record(fork, s);
  rt.wait(side, fork);
  rt.launch(s, SetTo{x, 1});
  rt.launch(side, SetTo{x, 2});
  rt.record(join, side);
  rt.wait(s, join);
  rt.launch(s, TripleAdd{x, x, 0});
  const GraphId graph = rt.end_capture(s);
  rt.launch_graph(s, graph);
  t.ends_with_any({3, 6}, "x, by two branches", x);
}

// Streams that were captured are not waited for by a replay: it is launched into one stream alone.
void captured_stream_is_not_ordered(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s"), side = rt.create_stream("side");
  const EventId fork = rt.create_event(), join = rt.create_event();
  rt.begin_capture(s);
  rt.record(fork, s);
  rt.wait(side, fork);
  rt.launch(side, SetTo{x, 1});
  rt.record(join, side);
  rt.wait(s, join);
  const GraphId graph = rt.end_capture(s);
  rt.launch_graph(s, graph);
  rt.launch(side, SetTo{x, 2});
  t.ends_with_any({1, 2}, "x, by a replay in s and work in side", x);
}

void two_graphs_are_not_ordered(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s"), other = rt.create_stream("other");
  GraphId graphs[2];
  for (const int g : {0, 1}) {
    rt.begin_capture(s);
    rt.launch(s, SetTo{x, g + 1});
    graphs[g] = rt.end_capture(s);
  }
  rt.launch_graph(s, graphs[0]);
  rt.launch_graph(other, graphs[1]);
  t.ends_with_any({1, 2}, "x, by two graphs in two streams", x);
}

void two_threads(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s");
  rt.begin_capture(s);
  rt.launch(s, AddTo{x, 1});
  const GraphId graph = rt.end_capture(s);
  std::thread([&] {
    t.fails(Error::illegal_state, "a launch by a second thread", [&] { rt.launch_graph(s, graph); });
  }).join();
  rt.launch_graph(s, graph);
  t.holds(1, "x", s, x);
}

void result_after_the_next_replay(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> step = t.value(), loss = t.value(), kept = t.value();
  const StreamId s = rt.create_stream("s");
  rt.begin_capture(s);
  rt.launch(s, AddTo{step, 1});
  rt.launch(s, TripleAdd{step, loss, 0});
  const GraphId graph = rt.end_capture(s);
  rt.launch_graph(s, graph);
  rt.launch(s, TripleAdd{loss, kept, 0});  // a copy, taken before the next replay
  rt.launch_graph(s, graph);
  t.holds(6, "the result, which is the second replay's", s, loss);
  t.holds(9, "what was copied out after the first", s, kept);
}

void graph_in_a_capture(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s"), other = rt.create_stream("other");
  rt.begin_capture(s);
  rt.launch(s, AddTo{x, 1});
  const GraphId inner = rt.end_capture(s);
  for (const CaptureMode mode : {CaptureMode::global, CaptureMode::thread_local_, CaptureMode::relaxed}) {
    rt.begin_capture(s, mode);
    t.fails(Error::stream_capture_unsupported, "launch of a graph into a capturing stream",
            [&] { rt.launch_graph(s, inner); });
    t.fails(Error::stream_capture_invalidated, "the end", [&] { rt.end_capture(s); });
    rt.launch_graph(s, inner);  // from the second mode on it has been launched before
    rt.begin_capture(s, mode);
    t.succeeds("its launch into another stream", [&] { rt.launch_graph(other, inner); });
    t.succeeds("the end", [&] { rt.end_capture(s); });
    rt.synchronize_stream(other);
  }
  t.holds(6, "x", s, x);
}

void destroyed_in_a_capture(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s");
  rt.begin_capture(s);
  rt.launch(s, AddTo{x, 1});
  const GraphId graph = rt.end_capture(s);
  for (const CaptureMode mode : {CaptureMode::global, CaptureMode::thread_local_}) {
    rt.begin_capture(s, mode);
    t.fails(Error::stream_capture_unsupported, "destruction of a graph during a capture",
            [&] { rt.destroy_graph(graph); });
    t.fails(Error::stream_capture_invalidated, "the end", [&] { rt.end_capture(s); });
  }
  rt.launch_graph(s, graph);
  t.holds(1, "x", s, x);
  rt.begin_capture(s, CaptureMode::relaxed);
  t.succeeds("destruction of a graph during a relaxed capture", [&] { rt.destroy_graph(graph); });
  t.succeeds("the end", [&] { rt.end_capture(s); });
}

void empty_graph(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s");
  rt.begin_capture(s);
  const GraphId empty = rt.end_capture(s);
  rt.launch(s, SetTo{x, 1});
  t.succeeds("launch of an empty graph", [&] { rt.launch_graph(s, empty); });
  rt.launch(s, TripleAdd{x, x, 1});
  t.holds(4, "x", s, x);
}

// The launches of one graph are ordered only if it has nodes.
void empty_graph_in_two_streams(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value(), y = t.value();
  const StreamId s = rt.create_stream("s"), other = rt.create_stream("other");
  rt.begin_capture(s);
  const GraphId empty = rt.end_capture(s);
  rt.launch(s, SetTo{x, 1});
  rt.launch_graph(s, empty);
  rt.launch_graph(other, empty);
  rt.launch(other, TripleAdd{x, y, 2});
  t.ends_with_any({2, 5}, "y, by a read that nothing orders", y);
}

void destroyed_in_flight(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s");
  rt.begin_capture(s);
  rt.launch(s, AddTo{x, 1});
  const GraphId graph = rt.end_capture(s);
  rt.launch_graph(s, graph);
  rt.destroy_graph(graph);
  t.holds(1, "x", s, x);
}

}  // namespace

std::span<const Case> replay_cases() {
  static constexpr Case kCases[] = {
      {"rule 34", "scalars and addresses are frozen at capture", scalars_are_frozen},
      {"rule 35", "what addresses point to is read at replay", content_is_read_at_replay},
      {"rule 35", "a replay over released memory", released_memory, Case::Kind::undefined},
      {"rule 35", "a replay over memory that moved", moved_memory, Case::Kind::undefined},
      {"rule 35", "a capture over memory that moved before", memory_again},
      {"rule 36", "launches of one graph are ordered, also from two streams", launches_are_ordered},
      {"rule 36", "a launch is ordered after prior work of its stream", whole_graph},
      {"rule 36", "a graph destroyed in flight completes", destroyed_in_flight},
      {"rule 37", "branches of a graph are ordered by edges alone", branches_are_not_ordered},
      {"rule 37", "a replay is not ordered with the streams that were captured",
       captured_stream_is_not_ordered},
      {"rule 37", "two graphs in two streams are not ordered", two_graphs_are_not_ordered},
      {"rule 38", "a graph is used by two threads at once", two_threads, Case::Kind::undefined},
      {"replay", "a result read after the next replay is the next one's", result_after_the_next_replay},
      {"replay", "an empty graph orders nothing and does nothing", empty_graph},
      {"rule 36", "launches of an empty graph from two streams are not ordered", empty_graph_in_two_streams,
       Case::Kind::same, 1, "a graph without nodes has no previous launch to wait for"},
      {"rule 5", "a graph cannot be launched into a capturing stream", graph_in_a_capture, Case::Kind::same,
       1, "error 900 in every mode; it was said to become a child"},
      {"rule 11", "a graph cannot be destroyed during a capture", destroyed_in_a_capture, Case::Kind::same, 1,
       "destruction is potentially unsafe"},
  };
  return kCases;
}

}  // namespace gatherfuzz
