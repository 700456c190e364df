// Drains: what streams, events and graphs order is kept by every schedule, and nothing else is.
#include <set>

#include "impl/runtime/collective.h"
#include "impl/runtime/local/world_for_tests.h"

namespace gatherfuzz {
namespace {

class DrainTest : public BothMemories {};
INSTANTIATE_TEST_SUITE_P(Memories, DrainTest, kBothMemories, memory_name);

std::vector<WorldOptions> schedules(const WorldOptions& base, uint64_t seeds) {
  std::vector<WorldOptions> list;
  for (const Schedule schedule : {Schedule::reverse, Schedule::random, Schedule::pct})
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      list.push_back(base);
      list.back().schedule = schedule;
      list.back().schedule_seed = seed;
      if (schedule == Schedule::reverse) break;
    }
  for (const int by : {1, 3, 50, 100000}) {
    list.push_back(base);
    list.back().delays = {{"comm", "", by}};
    list.push_back(base);
    list.back().delays = {{"compute", "triple_add", by}, {"comm", "all_gather", 7}};
  }
  return list;
}

// A step with two streams: gradients on one, collectives on the other, eager or captured and launched twice
// in a row.
struct Step {
  bool missing_wait = false;
  View<float> x{}, y{};

  void issue(Runtime& rt, StreamId compute, StreamId comm, EventId ready, EventId done, int value) const {
    const int ranks = rt.world_size();
    const uint32_t shard = x.count() / static_cast<uint32_t>(ranks);
    const uint32_t first = static_cast<uint32_t>(rt.rank()) * shard;
    rt.launch(compute, TripleAdd{x, x, value + rt.rank()});
    rt.record(ready, compute);
    rt.wait(comm, ready);
    rt.launch(comm, reduce_scatter_in_place(x, rt.rank(), ranks, Reduction::sum));
    rt.launch(comm, TripleAdd{x.slice(first, shard), y.slice(first, shard), value});
    rt.launch(comm, all_gather_in_place(y, rt.rank(), ranks));
    rt.record(done, comm);
    if (!missing_wait) rt.wait(compute, done);
    rt.launch(compute, TripleAdd{y, x, value});
    // Joins in any case, so that a capture can end.
    rt.record(done, comm);
    rt.wait(compute, done);
  }

  void run(Runtime& rt) {
    const auto n = static_cast<uint32_t>(4 * rt.world_size());
    x = floats(rt, n), y = floats(rt, n);
    const StreamId compute = rt.create_stream("compute"), comm = rt.create_stream("comm");
    const EventId ready = rt.create_event(), done = rt.create_event();
    rt.launch(compute, SetTo{x, 1});
    for (int i = 0; i < 2; ++i) issue(rt, compute, comm, ready, done, i);
    rt.begin_capture(compute);
    issue(rt, compute, comm, ready, done, 5);
    const GraphId graph = rt.end_capture(compute);
    rt.launch_graph(compute, graph);
    rt.launch_graph(compute, graph);
    rt.read(compute, x.slice(0, 1));
    rt.launch_graph(compute, graph);
    rt.launch(compute, TripleAdd{x, y, 1});
  }
};

std::vector<std::vector<uint64_t>> outcome(const WorldOptions& options, Step step,
                                           Interposer* interposer = nullptr) {
  World world(options);
  world.set_interposer(interposer);
  std::vector<std::vector<uint64_t>> result;
  std::vector<Step> steps(static_cast<std::size_t>(options.ranks), step);
  world.run([&](Runtime& rt) { steps[static_cast<std::size_t>(rt.rank())].run(rt); });
  for (int r = 0; r < options.ranks; ++r) {
    result.push_back(contents(world, r, steps[static_cast<std::size_t>(r)].x));
    result.push_back(contents(world, r, steps[static_cast<std::size_t>(r)].y));
  }
  return result;
}

TEST_P(DrainTest, RaceFreeProgramDoesNotDependOnTheSchedule) {
  for (const int ranks : {1, 2, 3}) {
    const auto expected = outcome(options(ranks), Step{});
    EXPECT_NE(expected[0], expected[1]);
    int compared = 0;
    for (const WorldOptions& each : schedules(options(ranks), 30)) {
      ASSERT_EQ(outcome(each, Step{}), expected)
          << static_cast<int>(each.schedule) << " " << each.schedule_seed;
      ++compared;
    }
    EXPECT_EQ(compared, 1 + 30 + 30 + 8);
  }
}

TEST_P(DrainTest, MissingWaitShows) {
  std::set<std::vector<std::vector<uint64_t>>> outcomes;
  const auto expected = outcome(options(2), Step{true});
  int different = 0;
  for (const WorldOptions& each : schedules(options(2), 30))
    different += outcome(each, Step{true}) != expected ? 1 : 0;
  EXPECT_GT(different, 10);
}

TEST_P(DrainTest, SameSeedSameOutcome) {
  for (uint64_t seed = 0; seed < 10; ++seed)
    for (const Schedule schedule : {Schedule::random, Schedule::pct})
      EXPECT_EQ(outcome(options(2, schedule, seed), Step{true}),
                outcome(options(2, schedule, seed), Step{true}));
}

// A machine that ignores waits for collectives: races appear in a correct program, eager and in graphs.
struct Deaf : Interposer {
  int times(const OpRef&) override { return 1; }
  const std::byte* before(const OpRef&) override { return nullptr; }
  void after(const OpRef&) override {}
  bool honours_wait(int, const OpType* what, bool capturing) override {
    return capturing || what != &op_type<AllGather>();
  }
};

TEST_P(DrainTest, IgnoredWaitShows) {
  Deaf deaf;
  const auto expected = outcome(options(2), Step{});
  EXPECT_EQ(outcome(options(2), Step{}, &deaf), expected) << "in issue order every wait is satisfied";
  int different = 0;
  for (const WorldOptions& each : schedules(options(2), 30))
    different += outcome(each, Step{}, &deaf) != expected ? 1 : 0;
  EXPECT_GT(different, 10);
}

// The order in which ops with a value ran on rank 0.
struct Log : Observer {
  void before(const OpRef& op) override {
    if (op.type == &op_type<SetTo>()) values += std::to_string(reinterpret_cast<const SetTo*>(op.op)->value);
  }
  void after(const OpRef&) override {}
  void mark(int, const Mark& mark) override { values += static_cast<char>(mark.code); }
  std::string values;
};

std::set<std::string> orders(const WorldOptions& base,
                             const std::function<void(Runtime&, const View<float>&)>& body) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    WorldOptions each = base;
    each.schedule = Schedule::random;
    each.schedule_seed = seed;
    World world(each);
    Log log;
    world.set_observer(&log);
    world.run([&](Runtime& rt) { body(rt, floats(rt, 4)); });
    seen.insert(log.values);
  }
  return seen;
}

using Orders = std::set<std::string>;

TEST_P(DrainTest, StreamsKeepTheirOrderAndNothingElseDoes) {
  EXPECT_EQ(orders(options(),
                   [](Runtime& rt, const View<float>& x) {
                     const StreamId s = rt.create_stream("s"), t = rt.create_stream("t");
                     rt.launch(s, SetTo{x, 1});
                     rt.launch(s, SetTo{x, 2});
                     rt.launch(t, SetTo{x, 3});
                   }),
            (Orders{"123", "132", "312"}));
}

TEST_P(DrainTest, MarksKeepTheirPlaceInTheStream) {
  EXPECT_EQ(orders(options(),
                   [](Runtime& rt, const View<float>& x) {
                     const StreamId s = rt.create_stream("s");
                     rt.mark(s, {'a'});
                     rt.launch(s, SetTo{x, 1});
                     rt.mark(s, {'b'});
                     rt.launch(s, SetTo{x, 2});
                   }),
            (Orders{"a1b2"}));
}

TEST_P(DrainTest, DelayHoldsTheHeadOfAStreamBack) {
  for (const int by : {0, 2, 1000}) {
    WorldOptions delayed = options();
    delayed.delays = {{"s", "set_to", by}};
    World world(delayed);
    Log log;
    world.set_observer(&log);
    world.run([&](Runtime& rt) {
      const View<float> x = floats(rt, 4);
      const StreamId s = rt.create_stream("s"), t = rt.create_stream("t");
      rt.launch(s, SetTo{x, 1});
      for (int i = 2; i < 6; ++i) rt.launch(t, SetTo{x, i});
    });
    EXPECT_EQ(log.values, by == 0 ? "12345" : by == 2 ? "23145" : "23451");
  }
}

}  // namespace
}  // namespace gatherfuzz
