// The default drain: each rank's queue in issue order. Events need no attention then: whatever is waited for
// was issued before.
#include "impl/runtime/local/rank.h"

namespace gatherfuzz {

class FifoDrain : public Drain {
 public:
  explicit FifoDrain(World& world) : Drain(world), cursors_(static_cast<std::size_t>(world.ranks())) {}

  bool step() override {
    bool progress = false;
    for (bool again = true; again && !world_.stopped();) {
      again = false;
      for (int r = 0; r < world_.ranks(); ++r) progress = run_rank(r) || progress;
      if (run_collective()) again = progress = true;
    }
    return progress;
  }

  std::string stuck() const override {
    std::vector<OpRef> refs(cursors_.size());
    std::vector<const OpRef*> blocked;
    bool any = false;
    for (std::size_t r = 0; r < cursors_.size(); ++r) {
      if (cursors_[r].blocked) refs[r] = at(static_cast<int>(r));
      blocked.push_back(cursors_[r].blocked ? &refs[r] : nullptr);
      any = any || cursors_[r].blocked;
    }
    return any ? describe_wait(blocked) : std::string();
  }

  bool record_done(int r, uint32_t, uint64_t issued) const override {
    const Cursor& cursor = cursors_[static_cast<std::size_t>(r)];
    return rank(r).issued_ - rank(r).queue_.size() + cursor.item >= issued;
  }

  bool stream_done(int r, StreamId, uint64_t issued) const override { return record_done(r, 0, issued); }

  void forget() override { cursors_.assign(cursors_.size(), {}); }

 private:
  struct Cursor {
    std::size_t item = 0;
    std::size_t node = 0;  // within the graph that is being launched
    bool blocked = false;  // at a collective
  };

  // The op that the rank's cursor stands at.
  OpRef at(int r) const {
    const Cursor& cursor = cursors_[static_cast<std::size_t>(r)];
    const RankRuntime& rank = this->rank(r);
    const QueueItem& item = rank.queue_[cursor.item];
    if (item.kind == QueueItem::Kind::graph) {
      const GraphExec& graph = *rank.graphs_[item.value - 1];
      const GraphNode& node = graph.nodes[cursor.node];
      return {node.type, graph.op(node), r, node.stream, static_cast<GraphId>(item.value), node.site};
    }
    return {item.type, rank.stored(item), r, item.stream, 0, item.site};
  }

  bool run_rank(int r) {
    Cursor& cursor = cursors_[static_cast<std::size_t>(r)];
    RankRuntime& rank = this->rank(r);
    if (cursor.blocked || rank.queue_.empty()) return false;
    while (cursor.item < rank.queue_.size() && !world_.stopped()) {
      const QueueItem& item = rank.queue_[cursor.item];
      if (item.kind == QueueItem::Kind::graph) {
        if (!run_graph(cursor, rank, item)) return true;
      } else if (item.kind == QueueItem::Kind::mark) {
        if (world_.observer_ != nullptr)
          world_.observer_->mark(r, *reinterpret_cast<const Mark*>(rank.stored(item)));
      } else {
        const OpRef ref{item.type, rank.stored(item), r, item.stream, 0, item.site};
        if (item.kind == QueueItem::Kind::op) {
          world_.execute(ref);
        } else if (comes_to(ref)) {
          cursor.blocked = true;
          return true;
        }
      }
      ++cursor.item;
    }
    rank.queue_.clear();
    rank.storage_.clear();
    cursor.item = 0;
    return true;
  }

  // False if it stopped at a collective.
  bool run_graph(Cursor& cursor, RankRuntime& rank, const QueueItem& item) {
    const GraphExec& graph = *rank.graphs_[item.value - 1];
    for (; cursor.node < graph.nodes.size() && !world_.stopped(); ++cursor.node) {
      const GraphNode& node = graph.nodes[cursor.node];
      const OpRef ref = at(rank.rank_);
      if (!node.type->collective()) {
        world_.execute(ref);
      } else if (comes_to(ref)) {
        cursor.blocked = true;
        return false;
      }
    }
    cursor.node = 0;
    return true;
  }

  bool comes_to(const OpRef& ref) {
    return world_.interposer_ == nullptr || world_.interposer_->times(ref) > 0;
  }

  bool run_collective() {
    for (const Cursor& cursor : cursors_)
      if (!cursor.blocked) return false;
    std::vector<OpRef>& calls = calls_;
    calls.clear();
    for (int r = 0; r < world_.ranks(); ++r) calls.push_back(at(r));
    for (const OpRef& call : calls)
      if (!agree(calls[0], call)) return false;
    world_.execute_collective(calls);
    for (int r = 0; r < world_.ranks(); ++r) {
      Cursor& cursor = cursors_[static_cast<std::size_t>(r)];
      cursor.blocked = false;
      const QueueItem& item = rank(r).queue_[cursor.item];
      if (item.kind == QueueItem::Kind::graph) {
        ++cursor.node;
      } else {
        ++cursor.item;
      }
    }
    return true;
  }

  std::vector<Cursor> cursors_;
  std::vector<OpRef> calls_;  // of the collective being executed
};

std::unique_ptr<Drain> make_fifo_drain(World& world) {
  return std::make_unique<FifoDrain>(world);
}

}  // namespace gatherfuzz
