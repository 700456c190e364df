// Stream capture, by the rules of CUDA: the numbers in comments are rules that conformance cases name.
#include <algorithm>
#include <utility>

#include "impl/runtime/local/rank.h"

namespace gatherfuzz {

void RankRuntime::invalidate(int capture) {
  captures_[static_cast<std::size_t>(capture)].invalidated = true;
}

// Rule 5: what may not be captured invalidates every capture involved.
void RankRuntime::fail_in_capture(StreamId stream, Error error, const std::string& what) {
  if (streams_[stream].capture >= 0) invalidate(streams_[stream].capture);
  throw RuntimeError(error, what + " (stream " + streams_[stream].name + ")");
}

bool RankRuntime::any_blocking_stream_captures() const {
  for (const Stream& s : streams_)
    if (s.capture >= 0 && s.kind == StreamKind::blocking) return true;
  return false;
}

// Rule 22.
void RankRuntime::fail_if_implicit(StreamId stream) {
  if (stream != 0 || !any_blocking_stream_captures()) return;
  for (const Stream& s : streams_)
    if (s.capture >= 0 && s.kind == StreamKind::blocking) invalidate(s.capture);
  throw RuntimeError(Error::stream_capture_implicit,
                     "the legacy stream is used while a blocking stream captures");
}

// A stream that does not exist, the legacy stream, or one that captures.
void RankRuntime::check_special(StreamId stream) {
  if (stream >= streams_.size()) throw RuntimeError(Error::invalid_resource_handle, "no such stream");
  fail_if_implicit(stream);
  const int capture = streams_[stream].capture;
  if (capture >= 0 && captures_[static_cast<std::size_t>(capture)].invalidated)  // rule 6
    throw RuntimeError(Error::stream_capture_invalidated, std::string("stream ") + streams_[stream].name);
}

bool RankRuntime::capturing(StreamId stream) const {
  if (stream >= streams_.size()) throw RuntimeError(Error::invalid_resource_handle, "no such stream");
  if (stream == 0 && any_blocking_stream_captures())  // rule 22: says so and invalidates nothing
    throw RuntimeError(Error::stream_capture_implicit,
                       "the legacy stream is asked while a blocking stream captures");
  return streams_[stream].capture >= 0;
}

void RankRuntime::on_host_thread(int thread) {
  if (thread < 0) throw RuntimeError(Error::invalid_value, "host threads are numbered from 0");
  host_thread_ = thread;
  const auto needed = static_cast<std::size_t>(thread) + 1;
  if (thread_modes_.size() < needed) thread_modes_.resize(needed, CaptureMode::global);
}

CaptureMode RankRuntime::exchange_capture_mode(CaptureMode mode) {
  return std::exchange(thread_modes_[static_cast<std::size_t>(host_thread_)], mode);
}

// Rules 11 to 13: whether the calling thread may make no potentially unsafe call because of this capture.
bool RankRuntime::prohibits_unsafe_calls(const Capture& capture) const {
  const CaptureMode mine = thread_modes_[static_cast<std::size_t>(host_thread_)];
  if (!capture.graph || mine == CaptureMode::relaxed) return false;
  if (capture.host_thread == host_thread_) return capture.mode != CaptureMode::relaxed;
  return mine == CaptureMode::global && capture.mode == CaptureMode::global;
}

// Such calls are allocation and release (rule 27), every question to an event and every synchronization,
// whatever stream it concerns, and instantiation and destruction of a graph.
void RankRuntime::fail_if_prohibited(const char* what, const char* name) {
  bool prohibited = false;
  for (std::size_t c = 0; c < captures_.size(); ++c) {
    if (!prohibits_unsafe_calls(captures_[c])) continue;
    prohibited = true;
    invalidate(static_cast<int>(c));
  }
  if (prohibited)
    throw RuntimeError(Error::stream_capture_unsupported, std::string(what) + name + " during a capture");
}

void RankRuntime::begin_capture(StreamId stream, CaptureMode mode) {
  fail_if_implicit(stream);
  if (stream == 0)  // rule 1
    throw RuntimeError(Error::stream_capture_unsupported, "the legacy stream cannot capture");
  if (stream >= streams_.size()) throw RuntimeError(Error::invalid_resource_handle, "no such stream");
  if (streams_[stream].capture >= 0)
    throw RuntimeError(Error::illegal_state,
                       std::string("stream ") + streams_[stream].name + " captures already");
  Capture capture;
  capture.origin = stream;
  capture.mode = mode;
  capture.host_thread = host_thread_;
  capture.graph->captured = releases_;
  captures_.push_back(std::move(capture));
  streams_[stream].capture = static_cast<int>(captures_.size()) - 1;
  streams_[stream].tail.clear();
}

// Rule 7: nothing executes; rule 34: the op's scalars and addresses are copied and never looked at again.
void RankRuntime::capture_op(StreamId stream, const OpType& type, const void* op, Site site) {
  Stream& s = streams_[stream];
  GraphExec& graph = *captures_[static_cast<std::size_t>(s.capture)].graph;
  GraphNode node;
  node.type = &type;
  node.place = graph.storage.add(op, type.size);
  node.stream = stream;
  node.site = site;
  node.first_edge = static_cast<uint32_t>(graph.edges.size());
  node.num_edges = static_cast<uint32_t>(s.tail.size());
  graph.edges.insert(graph.edges.end(), s.tail.begin(), s.tail.end());
  graph.nodes.push_back(node);
  s.tail.assign(1, static_cast<uint32_t>(graph.nodes.size()) - 1);
}

// Rule 20. While the capture lasts it is invalidated (rule 5); then the event has no record left.
void RankRuntime::fail_if_captured(const Event& event, const char* what) {
  if (event.capture < 0) return;
  if (!is_valid(event.capture))
    throw RuntimeError(
        Error::invalid_value,
        std::string(what) + " of an event recorded in a capture that has ended or is invalidated");
  invalidate(event.capture);
  throw RuntimeError(Error::captured_event, std::string(what) + " of an event recorded in a capture");
}

void RankRuntime::join_capture(StreamId stream, const Event& event) {
  Stream& s = streams_[stream];
  if (event.capture < 0)  // rule 17
    fail_in_capture(stream, Error::stream_capture_isolation,
                    "wait for an event recorded outside of the capture");
  if (!is_valid(event.capture))
    fail_in_capture(stream, Error::invalid_value,
                    "wait for an event recorded in a capture that has ended or is invalidated");
  if (stream == 0) {  // rule 22
    invalidate(event.capture);
    throw RuntimeError(Error::stream_capture_implicit, "the legacy stream cannot join a capture");
  }
  if (s.capture >= 0 && s.capture != event.capture) {  // rule 18
    invalidate(event.capture);
    fail_in_capture(stream, Error::stream_capture_merge, "wait for an event of another capture");
  }
  if (s.capture < 0) {  // rule 16
    s.capture = event.capture;
    s.tail.clear();
  }
  for (const uint32_t node : event.tail)  // rule 19: its own earlier items plus the event's
    if (std::find(s.tail.begin(), s.tail.end(), node) == s.tail.end()) s.tail.push_back(node);
}

// Rule 4: every stream's last work must lie before what the origin stream ends with. Names the streams where
// it does not.
std::string RankRuntime::unjoined_streams(int capture) const {
  const Capture& c = captures_[static_cast<std::size_t>(capture)];
  std::vector<bool> before_end(c.graph->nodes.size(), false);
  std::vector<uint32_t> open = streams_[c.origin].tail;
  while (!open.empty()) {
    const uint32_t node = open.back();
    open.pop_back();
    if (before_end[node]) continue;
    before_end[node] = true;
    for (const uint32_t earlier : c.graph->after(c.graph->nodes[node])) open.push_back(earlier);
  }
  std::string names;
  for (const Stream& s : streams_) {
    const bool joined = s.capture != capture || std::all_of(s.tail.begin(), s.tail.end(),
                                                            [&](uint32_t node) { return before_end[node]; });
    if (!joined) names += std::string(names.empty() ? "" : ", ") + s.name;
  }
  return names;
}

// Its streams go on as if nothing had been captured.
std::unique_ptr<GraphExec> RankRuntime::close_capture(int capture) {
  for (Stream& s : streams_) {
    if (s.capture != capture) continue;
    s.capture = -1;
    s.tail.clear();
  }
  return std::move(captures_[static_cast<std::size_t>(capture)].graph);
}

GraphId RankRuntime::end_capture(StreamId stream) {
  check_thread("end of a capture");
  if (stream >= streams_.size()) throw RuntimeError(Error::invalid_resource_handle, "no such stream");
  fail_if_implicit(stream);
  const int index = streams_[stream].capture;
  if (index < 0)
    throw RuntimeError(Error::illegal_state,
                       std::string("stream ") + streams_[stream].name + " does not capture");
  const Capture& capture = captures_[static_cast<std::size_t>(index)];
  if (capture.origin != stream) {  // rule 2
    invalidate(index);
    throw RuntimeError(Error::stream_capture_unmatched, std::string("the capture began on stream ") +
                                                            streams_[capture.origin].name + ", not on " +
                                                            streams_[stream].name);
  }
  const std::string unjoined = unjoined_streams(index);
  std::unique_ptr<GraphExec> graph = close_capture(index);
  if (capture.invalidated)  // rule 6: the error and no graph; the streams are usable again
    throw RuntimeError(Error::stream_capture_invalidated, "the capture was invalidated earlier");
  if (capture.mode != CaptureMode::relaxed && capture.host_thread != host_thread_)  // rule 3
    throw RuntimeError(Error::stream_capture_wrong_thread,
                       "the capture was begun by another thread, and is lost");
  if (!unjoined.empty())
    throw RuntimeError(
        Error::stream_capture_unjoined,
        "work on " + unjoined + " was not joined to the origin stream " + streams_[stream].name);
  fail_if_prohibited("instantiation of a graph");
  graphs_.push_back(std::move(graph));
  return static_cast<GraphId>(graphs_.size());
}

}  // namespace gatherfuzz
