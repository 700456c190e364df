// The drain in an order drawn from a seed: any op at the head of its stream whose waits are satisfied may run
// next, and inside a graph any node whose predecessors have run. Validates that results do not depend on
// order.
#include <deque>
#include <optional>

#include "impl/runtime/local/graph_run.h"
#include "impl/runtime/local/picker.h"
#include "impl/runtime/local/rank.h"

namespace gatherfuzz {

class SeededDrain : public Drain {
 public:
  explicit SeededDrain(World& world)
      : Drain(world),
        picker_(world.options_.schedule, world.options_.schedule_seed),
        ranks_(static_cast<std::size_t>(world.ranks())) {}

  bool step() override {
    for (int r = 0; r < world_.ranks(); ++r) distribute(r);
    bool progress = false;
    while (!world_.stopped()) {
      const bool advanced = advance_all();
      progress = progress || advanced;
      // A host that may go on does so sooner or later, and issues work beside what is still queued.
      if (world_.any_host_may_run() && picker_.coin()) break;
      collect();
      const std::optional<std::size_t> choice = choose();
      if (choice) run(ready_[*choice]);
      progress = progress || choice;
      if (!choice && !advanced) break;
    }
    for (int r = 0; r < world_.ranks(); ++r) clear_if_empty(r);
    return progress;
  }

  std::string stuck() const override {
    std::vector<OpRef> refs(ranks_.size());
    std::vector<const OpRef*> blocked(ranks_.size(), nullptr);
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
      if (!rank(static_cast<int>(r)).queue_.empty())
        return "rank " + std::to_string(r) + " has work that nothing will start";
    return {};
  }

  bool record_done(int r, uint32_t record, uint64_t) const override {
    const std::vector<bool>& reached = state(r).records;
    return record < reached.size() && reached[record];
  }

  // No op of its own: it waits for nothing but the stream, not even what the legacy stream holds back.
  bool stream_done(int r, StreamId stream, uint64_t issued) const override {
    const RankState& s = state(r);
    const uint64_t first = rank(r).issued_ - rank(r).queue_.size();  // number of the first item in the queue
    if (first + s.distributed < issued) return false;
    return stream >= s.streams.size() || s.streams[stream].empty() ||
           first + s.streams[stream].front().item >= issued;
  }

  void forget() override {
    for (int r = 0; r < world_.ranks(); ++r) {
      state(r) = {};
      state(r).records.assign(rank(r).records_ + 1u, true);
    }
  }

 private:
  struct Entry {
    uint32_t item = 0;        // in the rank's queue
    uint32_t collective = 0;  // number of the first collective in it, among the rank's
    uint32_t launch = 0;      // of a graph: how many launches of the same graph come before it
    int hold = -1;            // picks that it is still held back; -1: not yet looked at
  };
  struct RankState {
    std::size_t distributed = 0;
    std::vector<std::deque<Entry>> streams;
    std::vector<std::optional<GraphRun>> runs;  // by stream: the graph at its head
    std::vector<bool> records;                  // by number: reached
    std::vector<uint32_t> launched;             // by graph: launches issued
    std::vector<uint32_t> completed;            // by graph: launches ended
    uint32_t collectives_issued = 0;
    uint32_t collectives_done = 0;
    bool takes_part = false;  // the next collective was not left out by the interposer
  };
  struct Unit {
    int rank = 0;
    StreamId queue = 0;  // the stream whose head it is, or belongs to
    int node = -1;       // in a graph
    uint64_t issue = 0;
  };

  RankState& state(int r) { return ranks_[static_cast<std::size_t>(r)]; }
  const RankState& state(int r) const { return ranks_[static_cast<std::size_t>(r)]; }
  const QueueItem& item(const Unit& u) const {
    return rank(u.rank).queue_[state(u.rank).streams[u.queue].front().item];
  }

  OpRef ref(const Unit& u) const {
    const RankRuntime& owner = rank(u.rank);
    const QueueItem& i = item(u);
    if (u.node < 0) return {i.type, owner.stored(i), u.rank, i.stream, 0, i.site};
    const GraphExec& graph = *owner.graphs_[i.value - 1];
    const GraphNode& node = graph.nodes[static_cast<std::size_t>(u.node)];
    return {node.type, graph.op(node), u.rank, node.stream, static_cast<GraphId>(i.value), node.site};
  }

  void distribute(int r) {
    RankState& s = state(r);
    const RankRuntime& owner = rank(r);
    s.streams.resize(owner.streams_.size());
    s.runs.resize(owner.streams_.size());
    s.records.resize(owner.records_ + 1u);
    s.launched.resize(owner.graphs_.size() + 1);
    s.completed.resize(owner.graphs_.size() + 1);
    for (; s.distributed < owner.queue_.size(); ++s.distributed) {
      const QueueItem& i = owner.queue_[s.distributed];
      Entry entry{static_cast<uint32_t>(s.distributed), s.collectives_issued};
      if (i.kind == QueueItem::Kind::collective) ++s.collectives_issued;
      if (i.kind == QueueItem::Kind::graph) {
        entry.launch = s.launched[i.value]++;
        for (const GraphNode& node : owner.graphs_[i.value - 1]->nodes)
          s.collectives_issued += node.type->collective() ? 1 : 0;
      }
      s.streams[i.stream].push_back(entry);
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

  // The legacy stream and blocking streams wait for each other's earlier work.
  bool held_by_legacy_order(int r, std::size_t stream) const {
    const RankState& s = state(r);
    const auto& streams = rank(r).streams_;
    if (streams[stream].kind != StreamKind::blocking) return false;
    const auto earlier = [&](std::size_t other) {
      return !s.streams[other].empty() && s.streams[other].front().item < s.streams[stream].front().item;
    };
    if (stream != 0) return earlier(0);
    for (std::size_t other = 1; other < s.streams.size(); ++other)
      if (streams[other].kind == StreamKind::blocking && earlier(other)) return true;
    return false;
  }

  // Passes what takes no time at the heads of all streams: records, satisfied waits, marks, collectives that
  // the rank leaves out; and opens graphs.
  bool advance_all() {
    bool any = false;
    for (bool again = true; again;) {
      again = false;
      for (int r = 0; r < world_.ranks(); ++r) {
        again = leave_out(r) || again;
        for (std::size_t s = 0; s < state(r).streams.size(); ++s) again = advance(r, s) || again;
      }
      any = any || again;
    }
    return any;
  }

  bool advance(int r, std::size_t stream) {
    RankState& s = state(r);
    bool any = false;
    for (; !s.streams[stream].empty(); any = true) {
      const Entry& entry = s.streams[stream].front();
      const QueueItem& i = rank(r).queue_[entry.item];
      // A wait is no work: it is passed as soon as its event is complete.
      if (i.kind != QueueItem::Kind::wait && held_by_legacy_order(r, stream)) return any;
      if (i.kind == QueueItem::Kind::op || i.kind == QueueItem::Kind::collective) return any;
      if (i.kind == QueueItem::Kind::record) {
        s.records[i.value] = true;
      } else if (i.kind == QueueItem::Kind::wait) {
        if (!record_done(r, i.value, 0) && honours(r, i.type)) return any;
      } else if (i.kind == QueueItem::Kind::mark) {
        if (world_.observer_ != nullptr)
          world_.observer_->mark(r, *reinterpret_cast<const Mark*>(rank(r).stored(i)));
      } else if (!s.runs[stream]) {
        if (s.completed[i.value] < entry.launch && !rank(r).graphs_[i.value - 1]->nodes.empty())
          return any;  // rule 36; an empty graph waits for no launch before it
        open_graph(r, stream, i.value, entry.collective);
        return true;
      } else if (s.runs[stream]->ended()) {
        s.runs[stream].reset();
        ++s.completed[i.value];
      } else {
        return any;
      }
      s.streams[stream].pop_front();
    }
    return any;
  }

  bool honours(int r, const OpType* what) const {
    return world_.interposer_ == nullptr || world_.interposer_->honours_wait(r, what, false);
  }

  void open_graph(int r, std::size_t stream, uint32_t graph, uint32_t first_collective) {
    state(r).runs[stream].emplace(*rank(r).graphs_[graph - 1], first_collective,
                                  [&](const GraphNode& earlier, const GraphNode& later) {
                                    return earlier.stream == later.stream || honours(r, earlier.type);
                                  });
  }

  // Calls f(unit, number of the collective that it is or that comes next) for each op that streams and events
  // let run.
  template <class F>
  void for_each_head(int r, F&& f) const {
    const RankState& s = state(r);
    for (std::size_t q = 0; q < s.streams.size(); ++q) {
      if (s.streams[q].empty() || held_by_legacy_order(r, q)) continue;
      const Entry& entry = s.streams[q].front();
      const QueueItem& i = rank(r).queue_[entry.item];
      const uint64_t issue = uint64_t{entry.item} << 20;
      if (i.kind == QueueItem::Kind::op || i.kind == QueueItem::Kind::collective) {
        f(Unit{r, static_cast<StreamId>(q), -1, issue}, entry.collective);
      } else if (i.kind == QueueItem::Kind::graph && s.runs[q]) {
        s.runs[q]->for_each_runnable([&](std::size_t n, uint32_t collective) {
          f(Unit{r, static_cast<StreamId>(q), static_cast<int>(n), issue + n}, collective);
        });
      }
    }
  }

  // The collective that the rank must run next, if the rank has come to it.
  std::optional<Unit> next_collective(int r) const {
    std::optional<Unit> found;
    for_each_head(r, [&](const Unit& unit, uint32_t number) {
      if (number == state(r).collectives_done && ref(unit).type->collective()) found = unit;
    });
    return found;
  }

  // Asks the interposer once for each collective.
  bool leave_out(int r) {
    if (world_.interposer_ == nullptr || state(r).takes_part) return false;
    const std::optional<Unit> unit = next_collective(r);
    if (!unit) return false;
    state(r).takes_part = world_.interposer_->times(ref(*unit)) > 0;
    if (!state(r).takes_part) finish_collective(*unit);
    return !state(r).takes_part;
  }

  void collect() {
    ready_.clear();
    for (int r = 0; r < world_.ranks(); ++r)
      for_each_head(r, [&](const Unit& unit, uint32_t number) {
        const OpRef op = ref(unit);
        const bool first = r == 0 && number == state(r).collectives_done;
        if (!op.type->collective() || (first && all_ranks_agree(op))) ready_.push_back(unit);
      });
  }

  bool all_ranks_agree(const OpRef& first) const {
    for (int r = 1; r < world_.ranks(); ++r) {
      const std::optional<Unit> other = next_collective(r);
      if (!other || !agree(first, ref(*other))) return false;
    }
    return true;
  }

  int& hold_of(const Unit& u) {
    RankState& s = state(u.rank);
    return u.node < 0 ? s.streams[u.queue].front().hold
                      : s.runs[u.queue]->hold(static_cast<std::size_t>(u.node));
  }

  int delay_of(const Unit& u) const {
    const OpRef op = ref(u);
    for (const StreamDelay& delay : world_.options_.delays)
      if (delay.stream == rank(u.rank).stream_name(op.stream) &&
          (delay.op.empty() || delay.op == op.type->name))
        return delay.by;
    return 0;
  }

  // Which of the ready units runs next; while all are held back, time passes.
  std::optional<std::size_t> choose() {
    std::optional<std::size_t> best;
    while (!best && !ready_.empty()) {
      uint64_t best_key = 0;
      for (std::size_t i = 0; i < ready_.size(); ++i) {
        int& hold = hold_of(ready_[i]);
        if (hold < 0) hold = delay_of(ready_[i]);
        if (hold > 0) {
          --hold;
          continue;
        }
        const uint64_t key = picker_.priority(ready_[i].rank, ref(ready_[i]).stream, ready_[i].issue);
        if (best && key <= best_key) continue;
        best = i;
        best_key = key;
      }
    }
    return best;
  }

  void finish(const Unit& u) {
    if (u.node < 0) {
      state(u.rank).streams[u.queue].pop_front();
    } else {
      state(u.rank).runs[u.queue]->finish(static_cast<std::size_t>(u.node));
    }
  }

  void finish_collective(const Unit& u) {
    ++state(u.rank).collectives_done;
    state(u.rank).takes_part = false;
    finish(u);
  }

  void run(const Unit& u) {
    const OpRef op = ref(u);
    if (!op.type->collective()) {
      world_.execute(op);
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
    for (const Unit& unit : units) finish_collective(unit);
  }

  Picker picker_;
  std::vector<RankState> ranks_;
  std::vector<Unit> ready_;
};

std::unique_ptr<Drain> make_seeded_drain(World& world) {
  return std::make_unique<SeededDrain>(world);
}

}  // namespace gatherfuzz
