// Ranks that do not come to the same collectives: rules 48, 49 and 56, and the words of the report.
#include "impl/runtime/local/world_for_tests.h"

namespace gatherfuzz {
namespace {

struct Case {
  MemoryKind memory;
  Schedule schedule;
};

class DeadlockTest : public testing::TestWithParam<Case> {
 protected:
  // What the report says; empty if the run ends.
  std::string report(int ranks, const std::function<void(Runtime&, const View<float>&)>& body,
                     Interposer* interposer = nullptr) {
    WorldOptions options;
    options.ranks = ranks;
    options.memory = GetParam().memory;
    options.schedule = GetParam().schedule;
    World world(options);
    world.set_interposer(interposer);
    try {
      world.run([&](Runtime& rt) { body(rt, floats(rt, 12)); });
    } catch (const Deadlock& deadlock) {
      return deadlock.who_waits_for_whom;
    }
    return {};
  }
};
INSTANTIATE_TEST_SUITE_P(All, DeadlockTest,
                         testing::Values(Case{MemoryKind::symbolic, Schedule::fifo},
                                         Case{MemoryKind::symbolic, Schedule::random},
                                         Case{MemoryKind::host, Schedule::fifo},
                                         Case{MemoryKind::host, Schedule::reverse}));

AllGather gather(Runtime& rt, const View<float>& x) {
  return all_gather_in_place(x, rt.rank(), rt.world_size());
}
ReduceScatter scatter(Runtime& rt, const View<float>& x, Reduction reduction = Reduction::sum) {
  return reduce_scatter_in_place(x, rt.rank(), rt.world_size(), reduction);
}

TEST_P(DeadlockTest, MatchingCollectivesEnd) {
  EXPECT_EQ(report(3,
                   [](Runtime& rt, const View<float>& x) {
                     rt.launch(0, scatter(rt, x));
                     rt.launch(0, gather(rt, x));
                   }),
            "");
}

// rule 48
TEST_P(DeadlockTest, OrderDiffers) {
  EXPECT_EQ(report(2,
                   [](Runtime& rt, const View<float>& x) {
                     if (rt.rank() == 0) rt.launch(0, gather(rt, x));
                     rt.launch(0, scatter(rt, x));
                     if (rt.rank() == 1) rt.launch(0, gather(rt, x));
                   }),
            "rank 0 in all_gather (6 x f32) waits for rank 1, which is in reduce_scatter (6 x f32, sum); "
            "rank 1 in reduce_scatter (6 x f32, sum) waits for rank 0, which is in all_gather (6 x f32)");
}

// rule 48: also across streams of one rank
TEST_P(DeadlockTest, OrderDiffersAcrossStreams) {
  const std::string text = report(2, [](Runtime& rt, const View<float>& x) {
    const StreamId s = rt.create_stream("s"), t = rt.create_stream("t");
    if (rt.rank() == 0) rt.launch(s, gather(rt, x));
    rt.launch(t, scatter(rt, x));
    if (rt.rank() == 1) rt.launch(s, gather(rt, x));
  });
  EXPECT_NE(text.find("rank 0 in all_gather (6 x f32) waits for rank 1"), std::string::npos) << text;
}

TEST_P(DeadlockTest, CountTypeOrReductionDiffers) {
  EXPECT_EQ(
      report(2, [](Runtime& rt,
                   const View<float>& x) { rt.launch(0, gather(rt, x.slice(0, rt.rank() == 0 ? 8 : 12))); }),
      "rank 0 in all_gather (4 x f32) waits for rank 1, which is in all_gather (6 x f32); "
      "rank 1 in all_gather (6 x f32) waits for rank 0, which is in all_gather (4 x f32)");
  EXPECT_EQ(report(2,
                   [](Runtime& rt, const View<float>& x) {
                     const View<bf16> narrow = make_view<bf16>(x.buffer, 0, 12);
                     const Operand bucket = rt.rank() == 0 ? Operand(x) : Operand(narrow);
                     rt.launch(0, all_gather_in_place(bucket, rt.rank(), 2));
                   }),
            "rank 0 in all_gather (6 x f32) waits for rank 1, which is in all_gather (6 x bf16); "
            "rank 1 in all_gather (6 x bf16) waits for rank 0, which is in all_gather (6 x f32)");
  EXPECT_EQ(report(2,
                   [](Runtime& rt, const View<float>& x) {
                     rt.launch(0, scatter(rt, x, rt.rank() == 0 ? Reduction::sum : Reduction::average));
                   }),
            "rank 0 in reduce_scatter (6 x f32, sum) waits for rank 1, which is in reduce_scatter (6 x f32, "
            "average); "
            "rank 1 in reduce_scatter (6 x f32, average) waits for rank 0, which is in reduce_scatter (6 x "
            "f32, sum)");
}

TEST_P(DeadlockTest, RankThatEndsEarly) {
  EXPECT_EQ(report(3,
                   [](Runtime& rt, const View<float>& x) {
                     if (rt.rank() != 1) rt.launch(0, gather(rt, x));
                   }),
            "rank 0 in all_gather (4 x f32) waits for rank 1, which has ended; "
            "rank 2 in all_gather (4 x f32) waits for rank 1, which has ended");
}

TEST_P(DeadlockTest, HostThatWaitsForAnotherRanksCollective) {
  const auto body = [](Runtime& rt, const View<float>& x, bool by_event) {
    const StreamId s = rt.create_stream("s");
    const EventId e = rt.create_event();
    if (rt.rank() == 1) return;
    rt.launch(s, gather(rt, x));
    rt.record(e, s);
    if (by_event) {
      rt.synchronize(e);
    } else {
      rt.read(s, x.slice(0, 1));
    }
    ADD_FAILURE() << "the host went on";
  };
  for (const bool by_event : {true, false})
    EXPECT_EQ(report(2, [&](Runtime& rt, const View<float>& x) { body(rt, x, by_event); }),
              "rank 0 in all_gather (6 x f32) waits for rank 1, which has ended");
}

// rule 49
TEST_P(DeadlockTest, AllRanksCaptureOrNone) {
  const auto body = [](Runtime& rt, const View<float>& x, bool replay_on_all) {
    const StreamId s = rt.create_stream("s");
    rt.begin_capture(s);
    rt.launch(s, gather(rt, x));
    const GraphId graph = rt.end_capture(s);
    if (rt.rank() == 0 || replay_on_all) {
      rt.launch_graph(s, graph);
    } else {
      rt.launch(s, gather(rt, x));
    }
  };
  EXPECT_EQ(report(2, [&](Runtime& rt, const View<float>& x) { body(rt, x, true); }), "");
  EXPECT_EQ(report(2, [&](Runtime& rt, const View<float>& x) { body(rt, x, false); }),
            "rank 0 in all_gather (6 x f32) in a graph waits for rank 1, which is in all_gather (6 x f32); "
            "rank 1 in all_gather (6 x f32) waits for rank 0, which is in all_gather (6 x f32) in a graph");
}

// rule 49: launching the graph is itself collective
TEST_P(DeadlockTest, GraphThatOneRankDoesNotLaunch) {
  EXPECT_EQ(report(2,
                   [](Runtime& rt, const View<float>& x) {
                     const StreamId s = rt.create_stream("s");
                     rt.begin_capture(s);
                     rt.launch(s, gather(rt, x));
                     const GraphId graph = rt.end_capture(s);
                     if (rt.rank() == 1) rt.launch_graph(s, graph);
                   }),
            "rank 1 in all_gather (6 x f32) in a graph waits for rank 0, which has ended");
}

// rule 56
TEST_P(DeadlockTest, ZeroElementsOnOneRankHangsTheOthers) {
  EXPECT_EQ(report(2, [](Runtime& rt, const View<float>& x) { rt.launch(0, gather(rt, x.slice(0, 0))); }),
            "");
  EXPECT_EQ(
      report(2, [](Runtime& rt,
                   const View<float>& x) { rt.launch(0, gather(rt, x.slice(0, rt.rank() == 0 ? 0 : 12))); }),
      "rank 1 in all_gather (6 x f32) waits for rank 0, which has ended");
}

// Leaves out one collective of one rank, and counts how often it was asked about collectives.
class Dropper : public Interposer {
 public:
  Dropper(int rank, int which) : rank_(rank), which_(which) {}
  int times(const OpRef& op) override {
    if (!op.type->collective() || op.rank != rank_) return 1;
    return asked++ == which_ ? 0 : 1;
  }
  const std::byte* before(const OpRef&) override { return nullptr; }
  void after(const OpRef&) override {}
  bool honours_wait(int, const OpType*, bool) override { return true; }
  int asked = 0;

 private:
  int rank_;
  int which_;
};

TEST_P(DeadlockTest, DroppedCollective) {
  const auto body = [](Runtime& rt, const View<float>& x) {
    const StreamId s = rt.create_stream("s"), t = rt.create_stream("t");
    rt.launch(s, gather(rt, x));
    rt.launch(t, scatter(rt, x));
    rt.launch(s, gather(rt, x));
  };
  for (const int rank : {0, 1}) {
    Dropper first(rank, 0), last(rank, 2), none(rank, 99);
    EXPECT_EQ(report(2, body, &none), "");
    EXPECT_EQ(none.asked, 3) << "once for each collective";
    const std::string r = std::to_string(rank), o = std::to_string(1 - rank);
    const std::string a = "rank " + o + " in all_gather (6 x f32) waits for rank " + r;
    const std::string b = "rank " + r + " in reduce_scatter (6 x f32, sum) waits for rank " + o;
    const std::string text = report(2, body, &first);
    EXPECT_NE(text.find(a + ", which is in reduce_scatter (6 x f32, sum)"), std::string::npos) << text;
    EXPECT_NE(text.find(b + ", which is in all_gather (6 x f32)"), std::string::npos) << text;
    EXPECT_EQ(report(2, body, &last), a + ", which has ended");
  }
}

}  // namespace
}  // namespace gatherfuzz
