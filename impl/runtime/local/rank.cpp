#include "impl/runtime/local/rank.h"

#include <algorithm>

#include "impl/runtime/host_read.h"

namespace gatherfuzz {

namespace {
// A rank that queues this much without waiting lets the queues drain, so that they stay in cache.
constexpr std::size_t kQueueLimit = 512;
}  // namespace

thread_local const World* RankRuntime::world_running_here = nullptr;

RankRuntime::RankRuntime(World& world, int rank) : world_(world), rank_(rank) {
  buffers_.resize(1);
  streams_.push_back({"legacy", StreamKind::blocking, -1, {}, nullptr});
}

BufferId RankRuntime::allocate(const char* name, uint32_t bytes, Fill fill) {
  fail_if_prohibited("allocation of ", name);
  buffers_.push_back({name, bytes, true, bytes, releases_});
  const auto r = static_cast<std::size_t>(rank_);
  const bool zeroed = fill == Fill::zero;
  return world_.memory_kind() == MemoryKind::symbolic ? world_.symbolic()[r].allocate(bytes, zeroed)
                                                      : world_.host()[r].allocate(bytes, zeroed);
}

void RankRuntime::release(BufferId buffer) {
  if (buffer == 0 || buffer >= buffers_.size() || !buffers_[buffer].alive)
    throw RuntimeError(Error::invalid_value, "release of a buffer that is not allocated");
  fail_if_prohibited("release of ", buffers_[buffer].name);
  wait_until([this] { return queue_.empty(); });  // what is queued may still use it
  ++releases_;
  buffers_[buffer].bytes = 0;
  buffers_[buffer].alive = false;
  const auto r = static_cast<std::size_t>(rank_);
  if (world_.memory_kind() == MemoryKind::symbolic) {
    world_.symbolic()[r].release(buffer);
  } else {
    world_.host()[r].release(buffer);
  }
}

void RankRuntime::allocate_again(BufferId buffer, Fill fill) {
  if (buffer == 0 || buffer >= buffers_.size() || buffers_[buffer].alive)
    throw RuntimeError(Error::invalid_value, "memory again for a buffer that was not released");
  Buffer& b = buffers_[buffer];
  fail_if_prohibited("allocation of ", b.name);
  b.bytes = b.size;
  b.alive = true;
  b.placed = releases_;
  const auto r = static_cast<std::size_t>(rank_);
  const bool zeroed = fill == Fill::zero;
  if (world_.memory_kind() == MemoryKind::symbolic) {
    world_.symbolic()[r].allocate_again(buffer, zeroed);
  } else {
    world_.host()[r].allocate_again(buffer, b.size, zeroed);
  }
}

StreamId RankRuntime::create_stream(const char* name, StreamKind kind) {
  streams_.push_back({name, kind, -1, {}, nullptr});
  return static_cast<StreamId>(streams_.size() - 1);
}

EventId RankRuntime::create_event() {
  events_.emplace_back();
  return static_cast<EventId>(events_.size() - 1);
}

QueueItem& RankRuntime::push(QueueItem::Kind kind, StreamId stream, Site site) {
  if (queue_.size() >= kQueueLimit) fiber_->leave();
  ++issued_;
  QueueItem& item = queue_.emplace_back();
  item.kind = kind;
  item.stream = stream;
  item.site = site;
  return item;
}

void RankRuntime::fail_unallocated(const OpType& type, const Operand& operand) const {
  const char* name = operand.buffer < buffers_.size() ? buffers_[operand.buffer].name : "unknown";
  throw RuntimeError(Error::illegal_address, std::string(type.name) +
                                                 " names memory that is not allocated (bytes " +
                                                 std::to_string(operand.begin) + " to " +
                                                 std::to_string(operand.end()) + " of buffer " + name + ")");
}

void RankRuntime::check_operands(const OpType& type, const void* op) const {
  if (type.composite) {
    const std::vector<Operand>& extents = static_cast<const CompositeOp*>(op)->body->extents;
    if (std::all_of(extents.begin(), extents.end(), [&](const Operand& o) { return is_allocated(o); }))
      return;
  }
  for_each_access(type, op, [&](const Operand& operand, const OperandField&) {
    if (!is_allocated(operand)) fail_unallocated(type, operand);
  });
}

// A graph holds the addresses of its capture (rule 34).
void RankRuntime::check_unmoved(const GraphExec& graph, const GraphNode& node) const {
  for_each_access(*node.type, graph.op(node), [&](const Operand& operand, const OperandField&) {
    if (buffers_[operand.buffer].placed > graph.captured)
      throw RuntimeError(Error::illegal_address,
                         std::string(node.type->name) +
                             " in a graph names memory that has moved since the capture (buffer " +
                             buffers_[operand.buffer].name + ")");
  });
}

// Memory may have been released since the capture, or since the last launch.
void RankRuntime::check_graph(GraphExec& graph) const {
  if (graph.checked == releases_) return;
  for (const GraphNode& node : graph.nodes) {
    check_operands(*node.type, graph.op(node));
    check_unmoved(graph, node);
  }
  graph.checked = releases_;
}

void RankRuntime::fail_thread(const char* what) const {
  throw RuntimeError(Error::illegal_state,
                     std::string(what) +
                         " by another thread than the one that runs the rank; threads take "
                         "turns through on_host_thread");
}

void RankRuntime::submit(StreamId stream, const OpType& type, const void* op, Site site) {
  check_stream(stream);
  if (type.collective()) {
    check_thread(type.name);
    // Rule 56: a collective of no elements is nothing at all.
    if (describe_collective(type, op).count == 0) return;
    check_layout(type, op, rank_, world_size());
  }
  streams_[stream].last = &type;
  if (streams_[stream].capture >= 0) {
    capture_op(stream, type, op, site);
    return;
  }
  check_operands(type, op);
  QueueItem& item = push(type.collective() ? QueueItem::Kind::collective : QueueItem::Kind::op, stream, site);
  item.type = &type;
  item.value = storage_.add(op, type.size);
}

void RankRuntime::record(EventId event, StreamId stream, Site site) {
  check_stream(stream);
  Event& e = event_at(event);
  Stream& s = streams_[stream];
  e.last = s.last;
  e.capture = s.capture;
  e.tail = s.tail;
  e.record = ++records_;
  e.issued = issued_;
  if (s.capture >= 0 || world_.in_issue_order()) return;
  QueueItem& item = push(QueueItem::Kind::record, stream, site);
  item.value = e.record;
  item.type = e.last;
}

void RankRuntime::wait(StreamId stream, EventId event, Site site) {
  check_stream(stream);
  const Event& e = event_at(event);
  if (e.record == 0) return;  // rule 24: an unrecorded event is complete
  if (e.capture >= 0 || streams_[stream].capture >= 0) {
    if (world_.interposer_ == nullptr || world_.interposer_->honours_wait(rank_, e.last, true))
      join_capture(stream, e);
    return;
  }
  if (world_.in_issue_order()) return;
  QueueItem& item = push(QueueItem::Kind::wait, stream, site);
  item.value = e.record;
  item.type = e.last;
}

void RankRuntime::launch_graph(StreamId stream, GraphId graph, Site site) {
  check_thread("launch of a graph");
  if (stream >= streams_.size()) throw RuntimeError(Error::invalid_resource_handle, "no such stream");
  fail_if_implicit(stream);
  if (graph == 0 || graph > graphs_.size() || !graphs_[graph - 1u]->alive)
    throw RuntimeError(Error::invalid_value, "launch of a graph that does not exist");
  if (streams_[stream].capture >= 0)
    fail_in_capture(stream, Error::stream_capture_unsupported, "a graph launched into a capturing stream");
  check_graph(*graphs_[graph - 1u]);
  push(QueueItem::Kind::graph, stream, site).value = graph;
}

void RankRuntime::destroy_graph(GraphId graph) {
  if (graph == 0 || graph > graphs_.size() || !graphs_[graph - 1u]->alive)
    throw RuntimeError(Error::invalid_value, "a graph is destroyed that does not exist");
  fail_if_prohibited("destruction of a graph");
  graphs_[graph - 1u]->alive = false;
}

void RankRuntime::mark(StreamId stream, const Mark& mark) {
  QueueItem& item = push(QueueItem::Kind::mark, stream, {});
  item.value = storage_.add(&mark, sizeof mark);
}

void RankRuntime::synchronize_stream(StreamId stream) {
  if (stream >= streams_.size()) throw RuntimeError(Error::invalid_resource_handle, "no such stream");
  fail_if_implicit(stream);
  if (streams_[stream].capture >= 0)
    fail_in_capture(stream, Error::stream_capture_unsupported, "synchronization of a capturing stream");
  fail_if_prohibited("synchronization of stream ", streams_[stream].name);
  wait_until([this, stream, issued = issued_] {
    for (StreamId s = 0; s < streams_.size(); ++s) {
      // Rule 22: the legacy stream's work includes that of blocking streams.
      const bool concerned = s == stream || (stream == 0 && streams_[s].kind == StreamKind::blocking);
      if (concerned && !world_.drain_->stream_done(rank_, s, issued)) return false;
    }
    return true;
  });
}

RankRuntime::Event& RankRuntime::event_at(EventId event) {
  if (event >= events_.size()) throw RuntimeError(Error::invalid_resource_handle, "no such event");
  return events_[event];
}

bool RankRuntime::query(EventId event) {
  const Event& e = event_at(event);
  fail_if_captured(e, "query");
  fail_if_prohibited("query of an event");
  if (e.record == 0 || world_.drain_->record_done(rank_, e.record, e.issued)) return true;
  world_.count_op();  // a host that asks forever ends with its budget
  fiber_->leave();    // time passes between two questions
  return false;
}

void RankRuntime::synchronize(EventId event) {
  const Event e = event_at(event);
  fail_if_captured(e, "synchronization");
  fail_if_prohibited("synchronization of an event");
  if (e.record == 0) return;
  wait_until([this, e] { return world_.drain_->record_done(rank_, e.record, e.issued); });
}

HostScalar RankRuntime::read(StreamId stream, const Operand& scalar, Site site) {
  check_stream(stream);
  if (streams_[stream].capture >= 0)
    fail_in_capture(stream, Error::stream_capture_unsupported, "a host read from a capturing stream");
  fail_if_prohibited("a host read");
  HostScalar result;
  HostRead op;
  static_cast<Operand&>(op.source) = scalar;
  op.result = &result;
  submit(stream, op_type<HostRead>(), &op, site);
  wait_until([&result] { return result.done; });
  return result;
}

}  // namespace gatherfuzz
