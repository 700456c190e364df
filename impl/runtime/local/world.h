// The simulated machine that `symbolic` and `host` share: local ranks whose host code runs as fibers, their
// queues, captured graphs, and the drain that executes what was queued. The two differ only in what a byte of
// memory means.
//
// A rank's host code queues ops until it needs a value; then the next rank runs; when every rank waits or has
// ended the queues drain. Default order of the drain: each rank in issue order, a collective when every rank
// has come to it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "impl/runtime/collective.h"
#include "impl/runtime/composite.h"
#include "impl/runtime/local/fiber.h"
#include "impl/runtime/runtime.h"
#include "impl/runtime/schedule.h"

namespace gatherfuzz {

enum class MemoryKind : uint8_t { symbolic, host };

// Holds the head of a stream back for some picks of the drain, as a slow kernel or link would.
struct StreamDelay {
  std::string stream;
  std::string op;  // empty: any
  int by = 0;
};

// One op that the machine executes, or is asked to.
struct OpRef {
  const OpType* type = nullptr;
  const std::byte* op = nullptr;
  int rank = 0;
  StreamId stream = 0;
  GraphId graph = 0;  // 0: launched eagerly
  Site site;
};

// Sees what is executed, in order of execution.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void before(const OpRef& op) = 0;
  virtual void after(const OpRef& op) = 0;
  virtual void mark(int rank, const Mark& mark) = 0;
};

// Stands between the queue and the machine, and may change what is executed.
class Interposer {
 public:
  virtual ~Interposer() = default;
  // How often to execute the op (collectives: 0 leaves this rank out).
  virtual int times(const OpRef& op) = 0;
  // Around each execution; `before` may return other bytes to execute instead, valid until `after` of the
  // same op (all ranks of a collective come before any `after`), or null.
  virtual const std::byte* before(const OpRef& op) = 0;
  virtual void after(const OpRef& op) = 0;
  // Whether the machine honours a wait for work that ended with op `what` on the rank: a wait of a stream for
  // an event, or an edge between streams of a graph. Asked when the wait is met in execution, and
  // (`capturing`) when host code issues it in a capture. Executing in issue order asks nothing: every wait is
  // satisfied.
  virtual bool honours_wait(int rank, const OpType* what, bool capturing) = 0;
};

// The run used up its budget of ops.
struct OutOfBudget {};

struct GraphNode {
  const OpType* type = nullptr;
  uint32_t place = 0;  // of the op in the graph's storage
  StreamId stream = 0;
  Site site;
  uint32_t first_edge = 0;  // of the nodes it follows, in the graph's edges
  uint32_t num_edges = 0;
};

struct GraphExec {
  std::vector<GraphNode> nodes;
  std::vector<uint32_t> edges;
  OpStorage storage;
  bool alive = true;
  uint64_t captured = 0;  // releases of memory, plus 1, when the capture began
  uint64_t checked = 0;   // the same, when its operands were last found to be allocated

  const std::byte* op(const GraphNode& node) const { return storage.at(node.place); }
  // The nodes it follows.
  std::span<const uint32_t> after(const GraphNode& node) const {
    return std::span(edges).subspan(node.first_edge, node.num_edges);
  }
};

struct WorldOptions {
  int ranks = 1;
  MemoryKind memory = MemoryKind::symbolic;
  Schedule schedule = Schedule::fifo;
  uint64_t schedule_seed = 0;
  std::vector<StreamDelay> delays;
  uint64_t op_budget = 50'000'000;
};

class RankRuntime;

class World {
 public:
  explicit World(WorldOptions options);
  ~World();

  // Runs `body` as every rank's host code, to the end. Throws what a rank threw (the lowest rank's first),
  // Deadlock, or OutOfBudget; the other ranks are unwound then and what is queued is dropped. Buffers,
  // streams, captures and graphs live on until the world does, and it can run again.
  void run(const std::function<void(Runtime&)>& body);

  int ranks() const { return options_.ranks; }
  MemoryKind memory_kind() const { return options_.memory; }
  std::vector<SymbolicMemory>& symbolic() { return symbolic_; }
  std::vector<HostMemory>& host() { return host_; }

  void set_observer(Observer* observer) { observer_ = observer; }
  void set_interposer(Interposer* interposer) { interposer_ = interposer; }
  // Ends the current run at the next op; ranks are unwound.
  void request_stop() { stop_ = true; }
  bool stopped() const { return stop_; }

  uint64_t ops_executed() const { return ops_; }
  const char* stream_name(int rank, StreamId stream) const;
  const char* buffer_name(int rank, BufferId buffer) const;
  // The graphs of a rank, by GraphId - 1.
  const std::vector<std::unique_ptr<GraphExec>>& graphs(int rank) const;

  // Executes one op that is no collective, now, unseen by the interposer.
  void execute_now(const OpRef& op);

 private:
  friend class RankRuntime;
  friend class Drain;
  friend class FifoDrain;
  friend class SeededDrain;

  bool in_issue_order() const { return options_.schedule == Schedule::fifo && options_.delays.empty(); }
  void execute(const OpRef& op);
  void execute_collective(std::vector<OpRef>& ops);
  void call(const OpRef& op);
  void run_to_the_end();
  bool any_host_may_run() const;
  void unwind();
  void count_op() {
    if (++ops_ > options_.op_budget) throw OutOfBudget{};
  }

  WorldOptions options_;
  std::vector<SymbolicMemory> symbolic_;
  std::vector<HostMemory> host_;
  std::vector<std::unique_ptr<RankRuntime>> rank_runtimes_;
  Observer* observer_ = nullptr;
  Interposer* interposer_ = nullptr;
  std::unique_ptr<class Drain> drain_;
  std::vector<const void*> collective_;  // the bytes of the collective that is being executed, by rank
  bool stop_ = false;
  uint64_t ops_ = 0;
};

}  // namespace gatherfuzz
