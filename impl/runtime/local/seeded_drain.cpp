// The drain in an order drawn from a seed: any op at the head of its stream whose waits are satisfied may run next, and
// inside a graph any node whose predecessors have run. Validates that results do not depend on order.
#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include "impl/runtime/local/rank.h"

namespace gatherfuzz {

class SeededDrain : public Drain {
 public:
  explicit SeededDrain(World& world) : Drain(world), random_(world.options_.schedule_seed * 2 + 1) {
    ranks_.resize(static_cast<std::size_t>(world.ranks()));
  }

  bool step() override {
    for (int r = 0; r < world_.ranks(); ++r) distribute(r);
    bool progress = false;
    while (!world_.stopped()) {
      const bool advanced = advance_all();
      collect();
      const std::optional<std::size_t> choice = choose();
      if (choice) run(ready_[*choice]);
      progress = progress || advanced || choice;
      if (!choice && !advanced) break;
    }
    for (int r = 0; r < world_.ranks(); ++r) clear_if_empty(r);
    return progress;
  }

  std::string stuck() const override {
    std::vector<OpRef> refs(ranks_.size());
    std::vector<const OpRef*> blocked(ranks_.size(), nullptr);
    std::string waits;
    bool any = false;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (const std::optional<Unit> unit = next_collective(static_cast<int>(r))) {
        refs[r] = ref(*unit);
        blocked[r] = &refs[r];
        any = true;
      }
    }
    if (any) return describe_wait(blocked);
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      for (const auto& stream : ranks_[r].streams)
        if (!stream.empty() && waits.empty())
          waits = "rank " + std::to_string(r) + " has work that nothing will start";
    return waits;
  }

  bool record_done(int r, uint32_t record) const override {
    return record == 0 || ranks_[static_cast<std::size_t>(r)].records.count(record) != 0;
  }

 private:
  struct GraphRun {
    std::vector<uint32_t> missing;             // predecessors that have not run, by node
    std::vector<std::vector<uint32_t>> next;   // successors, by node
    std::vector<uint32_t> order;               // of collectives, by node
    std::vector<int> hold;
    std::size_t left = 0;
  };
  struct Entry {
    uint32_t item = 0;   // in the rank's queue
    uint32_t order = 0;  // of the first collective in it, among the rank's collectives
    int hold = -1;       // picks that it is still held back; -1: not yet looked at
  };
  struct RankState {
    std::size_t distributed = 0;
    std::vector<std::deque<Entry>> streams;
    std::vector<std::optional<GraphRun>> runs;  // by stream: the graph at its head
    std::map<uint32_t, bool> records;
    uint32_t collectives_issued = 0;
    uint32_t collectives_done = 0;
  };
  struct Unit {
    int rank = 0;
    StreamId queue = 0;  // the stream whose head it is, or belongs to
    int node = -1;       // in a graph
    uint64_t issue = 0;
  };

  RankState& state(int r) { return ranks_[static_cast<std::size_t>(r)]; }
  const RankState& state(int r) const { return ranks_[static_cast<std::size_t>(r)]; }
  const QueueItem& item(const Unit& u) const { return rank(u.rank).queue_[state(u.rank).streams[u.queue].front().item]; }

  OpRef ref(const Unit& u) const {
    const RankRuntime& owner = rank(u.rank);
    const QueueItem& i = item(u);
    if (u.node < 0)
      return {i.type, reinterpret_cast<const std::byte*>(owner.storage_.data()) + i.value, u.rank, i.stream, 0, i.site};
    const GraphExec& graph = *owner.graphs_[i.value - 1];
    const GraphNode& node = graph.nodes[static_cast<std::size_t>(u.node)];
    return {node.type, graph.op(node), u.rank, node.stream, static_cast<GraphId>(i.value), node.site};
  }

  void distribute(int r) {
    RankState& s = state(r);
    const RankRuntime& owner = rank(r);
    s.streams.resize(owner.streams_.size());
    s.runs.resize(owner.streams_.size());
    for (; s.distributed < owner.queue_.size(); ++s.distributed) {
      const QueueItem& i = owner.queue_[s.distributed];
      s.streams[i.stream].push_back({static_cast<uint32_t>(s.distributed), s.collectives_issued, -1});
      if (i.kind == QueueItem::Kind::collective) ++s.collectives_issued;
      if (i.kind == QueueItem::Kind::graph)
        for (const GraphNode& node : owner.graphs_[i.value - 1]->nodes)
          s.collectives_issued += node.type->collective() ? 1 : 0;
    }
  }

  void clear_if_empty(int r) {
    RankState& s = state(r);
    for (const auto& stream : s.streams)
      if (!stream.empty()) return;
    rank(r).queue_.clear();
    rank(r).storage_.clear();
    s.distributed = 0;
  }

  // Passes records, satisfied waits and marks, and opens graphs, at the heads of all streams.
  bool advance_all() {
    bool any = false;
    for (bool again = true; again;) {
      again = false;
      for (int r = 0; r < world_.ranks(); ++r)
        for (std::size_t s = 0; s < state(r).streams.size(); ++s) again = advance(r, s) || again;
      any = any || again;
    }
    return any;
  }

  bool advance(int r, std::size_t stream) {
    RankState& s = state(r);
    bool any = false;
    while (!s.streams[stream].empty()) {
      const Entry& entry = s.streams[stream].front();
      const QueueItem& i = rank(r).queue_[entry.item];
      if (i.kind == QueueItem::Kind::record) {
        s.records[i.value] = true;
      } else if (i.kind == QueueItem::Kind::wait) {
        const bool honoured = world_.interposer_ == nullptr || world_.interposer_->honours_wait(r, i.type);
        if (honoured && !record_done(r, i.value)) return any;
      } else if (i.kind == QueueItem::Kind::mark) {
        const auto* bytes = reinterpret_cast<const std::byte*>(rank(r).storage_.data()) + i.value;
        if (world_.observer_ != nullptr) world_.observer_->mark(r, *reinterpret_cast<const Mark*>(bytes));
      } else if (i.kind == QueueItem::Kind::graph) {
        if (!s.runs[stream]) {
          open_graph(r, stream, i.value, entry.order);
          return true;
        }
        if (s.runs[stream]->left > 0) return any;
        s.runs[stream].reset();
      } else {
        return any;
      }
      s.streams[stream].pop_front();
      any = true;
    }
    return any;
  }

  void open_graph(int r, std::size_t stream, uint32_t graph_id, uint32_t first_order) {
    const GraphExec& graph = *rank(r).graphs_[graph_id - 1];
    GraphRun run;
    run.left = graph.nodes.size();
    run.next.resize(graph.nodes.size());
    run.hold.assign(graph.nodes.size(), -1);
    uint32_t order = first_order;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      run.missing.push_back(static_cast<uint32_t>(graph.nodes[n].after.size()));
      run.order.push_back(order);
      if (graph.nodes[n].type->collective()) ++order;
      for (const uint32_t earlier : graph.nodes[n].after) run.next[earlier].push_back(static_cast<uint32_t>(n));
    }
    state(r).runs[stream] = std::move(run);
  }

  template <class F>
  void for_each_head(int r, F&& f) const {
    const RankState& s = state(r);
    for (std::size_t q = 0; q < s.streams.size(); ++q) {
      if (s.streams[q].empty()) continue;
      const Entry& entry = s.streams[q].front();
      const QueueItem& i = rank(r).queue_[entry.item];
      Unit unit{r, static_cast<StreamId>(q), -1, uint64_t{entry.item} << 20};
      if (i.kind == QueueItem::Kind::op || i.kind == QueueItem::Kind::collective) {
        f(unit, entry.order);
      } else if (i.kind == QueueItem::Kind::graph && s.runs[q]) {
        for (std::size_t n = 0; n < s.runs[q]->missing.size(); ++n) {
          if (s.runs[q]->missing[n] != 0) continue;  // waiting, or (set to a large number) done
          unit.node = static_cast<int>(n);
          unit.issue = (uint64_t{entry.item} << 20) + n;
          f(unit, s.runs[q]->order[n]);
        }
      }
    }
  }

  // The collective that the rank must run next, if the rank has come to it.
  std::optional<Unit> next_collective(int r) const {
    std::optional<Unit> found;
    for_each_head(r, [&](const Unit& unit, uint32_t order) {
      if (ref(unit).type->collective() && order == state(r).collectives_done) found = unit;
    });
    return found;
  }

  void collect() {
    ready_.clear();
    for (int r = 0; r < world_.ranks(); ++r)
      for_each_head(r, [&](const Unit& unit, uint32_t order) {
        const OpRef op = ref(unit);
        if (!op.type->collective()) {
          ready_.push_back(unit);
        } else if (order == state(r).collectives_done) {
          if (world_.interposer_ != nullptr && world_.interposer_->times(op) == 0) {
            ready_.push_back(unit);  // left out by this rank alone
          } else if (r == 0 && all_ranks_agree(op)) {
            ready_.push_back(unit);
          }
        }
      });
  }

  bool all_ranks_agree(const OpRef& first) const {
    for (int r = 1; r < world_.ranks(); ++r) {
      const std::optional<Unit> other = next_collective(r);
      if (!other) return false;
      const OpRef op = ref(*other);
      if (!(describe_collective(*op.type, op.op) == describe_collective(*first.type, first.op))) return false;
    }
    return true;
  }

  int& hold_of(const Unit& u) {
    RankState& s = state(u.rank);
    return u.node < 0 ? s.streams[u.queue].front().hold : s.runs[u.queue]->hold[static_cast<std::size_t>(u.node)];
  }

  int delay_of(const Unit& u) const {
    const OpRef op = ref(u);
    for (const Delay& delay : world_.options_.delays)
      if (delay.stream == rank(u.rank).stream_name(op.stream) && (delay.op.empty() || delay.op == op.type->name))
        return delay.by;
    return 0;
  }

  std::optional<std::size_t> choose() {
    std::optional<std::size_t> best;
    uint64_t best_key = 0;
    bool held = false;
    for (std::size_t i = 0; i < ready_.size(); ++i) {
      int& hold = hold_of(ready_[i]);
      if (hold < 0) hold = delay_of(ready_[i]);
      if (hold > 0) {
        --hold;
        held = true;
        continue;
      }
      const uint64_t key = priority(ready_[i]);
      if (!best || key > best_key) {
        best = i;
        best_key = key;
      }
    }
    return !best && held ? choose() : best;  // time passes although nothing else can run
  }

  uint64_t next_random() {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_;
  }

  uint64_t priority(const Unit& u) {
    switch (world_.options_.schedule) {
      case Schedule::fifo: return ~u.issue;
      case Schedule::reverse: return u.issue + 1;
      case Schedule::random: return next_random();
      case Schedule::pct: {
        const auto key = std::make_pair(u.rank, ref(u).stream);
        uint64_t& p = priorities_[key];
        if (p == 0 || next_random() % 16 == 0) p = next_random() | 1;
        return p;
      }
    }
    return 0;
  }

  void finish(const Unit& u) {
    RankState& s = state(u.rank);
    if (u.node < 0) {
      s.streams[u.queue].pop_front();
      return;
    }
    GraphRun& run = *s.runs[u.queue];
    const auto n = static_cast<std::size_t>(u.node);
    run.missing[n] = ~uint32_t{0};
    for (const uint32_t later : run.next[n]) --run.missing[later];
    --run.left;
  }

  void run(const Unit& u) {
    const OpRef op = ref(u);
    if (!op.type->collective()) {
      world_.execute(op);
      finish(u);
      return;
    }
    if (world_.interposer_ != nullptr && world_.interposer_->times(op) == 0) {
      ++state(u.rank).collectives_done;
      finish(u);
      return;
    }
    std::vector<Unit> units;
    std::vector<OpRef> ops;
    for (int r = 0; r < world_.ranks(); ++r) {
      units.push_back(*next_collective(r));
      ops.push_back(ref(units.back()));
    }
    world_.execute_collective(ops);
    for (const Unit& unit : units) {
      ++state(unit.rank).collectives_done;
      finish(unit);
    }
  }

  uint64_t random_;
  std::vector<RankState> ranks_;
  std::vector<Unit> ready_;
  std::map<std::pair<int, StreamId>, uint64_t> priorities_;
};

std::unique_ptr<Drain> make_seeded_drain(World& world) { return std::make_unique<SeededDrain>(world); }

}  // namespace gatherfuzz
