// One rank of a World: the queue that its host code fills, and the state of its streams, events and captures.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "impl/runtime/local/world.h"

namespace gatherfuzz {

struct QueueItem {
  enum class Kind : uint8_t { op, collective, record, wait, graph, mark };
  Kind kind = Kind::op;
  StreamId stream = 0;
  uint32_t value = 0;  // op, mark: place in storage; record, wait: number of the record; graph: GraphId
  const OpType* type = nullptr;  // op; wait, record: the op that the record follows
  Site site;
};

class RankRuntime : public Runtime {
 public:
  RankRuntime(World& world, int rank);

  int rank() const override { return rank_; }
  int world_size() const override { return world_.ranks(); }
  BufferId allocate(const char* name, uint32_t bytes, Fill fill) override;
  void release(BufferId buffer) override;
  void allocate_again(BufferId buffer, Fill fill) override;
  StreamId create_stream(const char* name, StreamKind kind) override;
  EventId create_event() override;
  void submit(StreamId stream, const OpType& type, const void* op, Site site) override;
  void record(EventId event, StreamId stream, Site site) override;
  void wait(StreamId stream, EventId event, Site site) override;
  bool query(EventId event) override;
  void synchronize(EventId event) override;
  void synchronize_stream(StreamId stream) override;
  HostScalar read(StreamId stream, const Operand& scalar, Site site) override;
  void on_host_thread(int thread) override;
  CaptureMode exchange_capture_mode(CaptureMode mode) override;
  void begin_capture(StreamId stream, CaptureMode mode) override;
  GraphId end_capture(StreamId stream) override;
  bool capturing(StreamId stream) const override;
  void launch_graph(StreamId stream, GraphId graph, Site site) override;
  void destroy_graph(GraphId graph) override;
  void mark(StreamId stream, const Mark& mark) override;

  const char* stream_name(StreamId stream) const { return streams_[stream].name; }
  const char* buffer_name(BufferId buffer) const { return buffers_[buffer].name; }

 private:
  friend class World;
  friend class Drain;
  friend class FifoDrain;
  friend class SeededDrain;

  static thread_local const World* world_running_here;

  struct Capture {
    std::unique_ptr<GraphExec> graph = std::make_unique<GraphExec>();
    StreamId origin = 0;
    CaptureMode mode = CaptureMode::thread_local_;
    int host_thread = 0;
    bool invalidated = false;
  };
  struct Stream {
    const char* name = "";
    StreamKind kind = StreamKind::blocking;
    int capture = -1;              // index into captures_, or -1
    std::vector<uint32_t> tail;    // nodes that the next captured op follows
    const OpType* last = nullptr;  // the op launched last, for naming waits
  };
  struct Event {
    uint32_t record = 0;  // number of the last record; 0 never
    uint64_t issued = 0;  // items that the rank had queued before it
    int capture = -1;     // index of the capture it was last recorded in, or -1
    std::vector<uint32_t> tail;
    const OpType* last = nullptr;
  };
  struct Buffer {
    const char* name = "";
    uint32_t bytes = 0;  // 0 while released
    bool alive = false;
    uint32_t size = 0;    // when alive
    uint64_t placed = 1;  // releases of memory, plus 1, when it got its address
  };

  QueueItem& push(QueueItem::Kind kind, StreamId stream, Site site);
  const std::byte* stored(const QueueItem& item) const {  // of an op, a collective or a mark
    return storage_.at(item.value);
  }
  void capture_op(StreamId stream, const OpType& type, const void* op, Site site);
  bool is_allocated(const Operand& operand) const {
    return operand.buffer < buffers_.size() &&
           uint64_t{operand.begin} + operand.bytes <= buffers_[operand.buffer].bytes;
  }
  [[noreturn]] void fail_unallocated(const OpType& type, const Operand& operand) const;
  void check_operands(const OpType& type, const void* op) const;
  void check_graph(GraphExec& graph) const;
  void check_unmoved(const GraphExec& graph, const GraphNode& node) const;
  Event& event_at(EventId event);
  // Throws if the stream cannot take work now.
  void check_stream(StreamId stream) {
    if (stream == 0 || stream >= streams_.size() || streams_[stream].capture >= 0) check_special(stream);
  }
  void check_special(StreamId stream);
  bool any_blocking_stream_captures() const;
  void invalidate(int capture);
  [[noreturn]] void fail_in_capture(StreamId stream, Error error, const std::string& what);
  bool prohibits_unsafe_calls(const Capture& capture) const;
  // Throws if a potentially unsafe call is prohibited now.
  void fail_if_prohibited(const char* what, const char* name = "");
  // Leaves the host code until the condition holds; it is asked while other ranks and queues go on.
  template <class Condition>
  void wait_until(Condition condition) {
    if (condition()) return;
    waiting_for_ = condition;
    fiber_->leave();
  }
  // Rules 38 and 54: graphs and communicators are for one thread at a time, here the one that runs the world.
  void check_thread(const char* what) const {
    if (world_running_here != &world_) fail_thread(what);
  }
  [[noreturn]] void fail_thread(const char* what) const;
  void fail_if_captured(const Event& event, const char* what);
  void join_capture(StreamId stream, const Event& event);
  bool is_valid(int capture) const {
    const Capture& c = captures_[static_cast<std::size_t>(capture)];
    return c.graph && !c.invalidated;
  }
  std::unique_ptr<GraphExec> close_capture(int capture);
  void fail_if_implicit(StreamId stream);
  std::string unjoined_streams(int capture) const;

  World& world_;
  int rank_;
  std::vector<Buffer> buffers_;
  std::vector<Stream> streams_;
  std::vector<Event> events_;
  std::vector<Capture> captures_;
  std::vector<CaptureMode> thread_modes_ = {CaptureMode::global};  // by host thread
  int host_thread_ = 0;
  std::vector<std::unique_ptr<GraphExec>> graphs_;
  uint32_t records_ = 0;
  uint64_t issued_ = 0;    // items queued so far
  uint64_t releases_ = 1;  // of memory, plus 1

  std::vector<QueueItem> queue_;
  OpStorage storage_;
  std::unique_ptr<Fiber> fiber_;
  std::function<bool()> waiting_for_;  // the host waits until this is true; null: it may run
};

// Executes queued items. `step` runs as far as the queues allow and says whether anything was executed.
class Drain {
 public:
  virtual ~Drain() = default;
  virtual bool step() = 0;
  // Who waits for whom, when nothing can run and something is queued; empty if nothing is queued.
  virtual std::string stuck() const = 0;
  // Whether the record with this number, made when the rank had queued `issued` items, has been reached.
  virtual bool record_done(int rank, uint32_t record, uint64_t issued) const = 0;
  // Whether the stream has run all that was queued in it when the rank had queued `issued` items.
  virtual bool stream_done(int rank, StreamId stream, uint64_t issued) const = 0;
  // The queues were dropped.
  virtual void forget() = 0;

 protected:
  explicit Drain(World& world) : world_(world) {}
  RankRuntime& rank(int r) const { return *world_.rank_runtimes_[static_cast<std::size_t>(r)]; }
  // Whether ranks that come to these calls go on together (rule 49: all of them in graphs or none).
  static bool agree(const OpRef& a, const OpRef& b);
  std::string describe_wait(const std::vector<const OpRef*>& blocked) const;

  World& world_;
};

std::unique_ptr<Drain> make_fifo_drain(World& world);
std::unique_ptr<Drain> make_seeded_drain(World& world);

}  // namespace gatherfuzz
