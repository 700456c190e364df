// The life of a run: exceptions, unwinding, budget, stop, runs after a failed one, marks, observers.
#include <numeric>

#include "impl/runtime/local/world_for_tests.h"

namespace gatherfuzz {
namespace {

class WorldTest : public BothMemories {};
INSTANTIATE_TEST_SUITE_P(Memories, WorldTest, kBothMemories, memory_name);

struct Oops {
  int rank;
};

struct CountsDestruction {
  int& count;
  ~CountsDestruction() { ++count; }
};

// Frees its buffer, as an owner does also while it is unwound.
struct OwnedBuffer {
  explicit OwnedBuffer(Runtime& runtime) : rt(runtime), view(floats(runtime, 4)) {}
  ~OwnedBuffer() { rt.release(view.buffer); }
  Runtime& rt;
  View<float> view;
};

TEST_P(WorldTest, RankThatThrowsUnwindsTheOthers) {
  World world(options(5));
  int destroyed = 0;
  View<float> x;
  try {
    world.run([&](Runtime& rt) {
      CountsDestruction outer{destroyed};
      x = floats(rt, 5);
      OwnedBuffer owned(rt);
      rt.launch(0, AddTo{owned.view, 1});
      CountsDestruction inner{destroyed};
      if (rt.rank() == 3) {
        rt.synchronize_stream(0);
        throw Oops{rt.rank()};
      }
      rt.launch(0, all_gather_in_place(x, rt.rank(), 5));
      rt.read(0, x.slice(0, 1));
      ADD_FAILURE() << "the host went on";
    });
    ADD_FAILURE() << "no exception";
  } catch (const Oops& oops) {
    EXPECT_EQ(oops.rank, 3);
  }
  EXPECT_EQ(destroyed, 10);
  world.run([&](Runtime& rt) {
    x = floats(rt, 5);
    rt.launch(0, SetTo{x.slice(static_cast<uint32_t>(rt.rank()), 1), 7});
    rt.launch(0, all_gather_in_place(x, rt.rank(), 5));
  });
  for (int r = 0; r < 5; ++r) EXPECT_TRUE(holds(world, r, x, 7));
}

TEST_P(WorldTest, LowestRankOfThoseThatThrowTogetherIsHeard) {
  World world(options(3));
  try {
    world.run([](Runtime& rt) {
      if (rt.rank() > 0) throw Oops{rt.rank()};
    });
    ADD_FAILURE();
  } catch (const Oops& oops) {
    EXPECT_EQ(oops.rank, 1);
  }
}

// Ranks wait inside handlers and destructors while others throw and catch.
TEST_P(WorldTest, ExceptionsOfRanksDoNotMix) {
  World world(options(4));
  int handled = 0;
  world.run([&](Runtime& rt) {
    const View<float> x = floats(rt, 4);
    for (int i = 0; i < 20; ++i) {
      try {
        OwnedBuffer owned(rt);  // its destructor waits while Oops is in flight
        rt.launch(0, AddTo{owned.view, 1});
        if ((i + rt.rank()) % 3 != 0) throw Oops{rt.rank()};
      } catch (const Oops& oops) {
        rt.launch(0, AddTo{x, 1});
        rt.synchronize_stream(0);  // waits while Oops is handled
        EXPECT_EQ(oops.rank, rt.rank());
        ++handled;
        try {
          rt.launch_graph(0, 0);
        } catch (const RuntimeError& error) {
          rt.synchronize_stream(0);
          EXPECT_EQ(error.error(), Error::invalid_value);
        }
        EXPECT_EQ(std::uncaught_exceptions(), 0);
      }
    }
  });
  EXPECT_EQ(handled, 13 + 14 + 13 + 13);
}

TEST_P(WorldTest, CancelledRankMayCatchEverything) {
  World world(options(2));
  int caught = 0;
  EXPECT_THROW(world.run([&](Runtime& rt) {
    const View<float> x = floats(rt, 4);
    if (rt.rank() == 1) throw Oops{1};
    rt.launch(0, all_gather_in_place(x, rt.rank(), 2));
    for (int i = 0; i < 3; ++i) {
      try {
        rt.read(0, x);
      } catch (...) {
        ++caught;
      }
    }
    rt.read(0, x);
    ADD_FAILURE() << "the host went on";
  }),
               Oops);
  EXPECT_EQ(caught, 3);
}

TEST_P(WorldTest, BudgetOfOps) {
  for (const Schedule schedule : {Schedule::fifo, Schedule::random}) {
    WorldOptions limited = options(2, schedule);
    limited.op_budget = 1000;
    World world(limited);
    int destroyed = 0;
    EXPECT_THROW(world.run([&](Runtime& rt) {
      CountsDestruction counted{destroyed};
      const View<float> x = floats(rt, 4);
      while (true) rt.launch(0, AddTo{x, 1});
    }),
                 OutOfBudget);
    EXPECT_EQ(world.ops_executed(), 1001u);
    EXPECT_EQ(destroyed, 2);
  }
}

TEST_P(WorldTest, HostThatAsksForeverEndsWithItsBudget) {
  WorldOptions limited = options(2);
  limited.op_budget = 1000;
  World world(limited);
  EXPECT_THROW(world.run([&](Runtime& rt) {
    const View<float> x = floats(rt, 4);
    if (rt.rank() == 1) return;
    const EventId e = rt.create_event();
    rt.launch(0, all_gather_in_place(x, 0, 2));
    rt.record(e, 0);
    while (!rt.query(e))
      ;
  }),
               OutOfBudget);
}

// Stops the run at the n-th op.
class Stopper : public Observer {
 public:
  Stopper(World& world, int at) : world_(world), at_(at) {}
  void before(const OpRef&) override {
    if (++seen == at_) world_.request_stop();
  }
  void after(const OpRef&) override {}
  void mark(int, const Mark&) override {}
  int seen = 0;

 private:
  World& world_;
  int at_;
};

TEST_P(WorldTest, StopEndsTheRunAtTheNextOp) {
  for (const Schedule schedule : {Schedule::fifo, Schedule::random}) {
    World world(options(2, schedule));
    Stopper stopper(world, 5);
    world.set_observer(&stopper);
    int destroyed = 0;
    const auto body = [&](Runtime& rt) {
      CountsDestruction counted{destroyed};
      const View<float> x = floats(rt, 4);
      for (int i = 0; i < 10; ++i) rt.launch(0, AddTo{x, 1});
      rt.synchronize_stream(0);
    };
    world.run(body);
    EXPECT_TRUE(world.stopped());
    EXPECT_EQ(stopper.seen, 5);
    EXPECT_EQ(destroyed, 2);
    world.run(body);
    EXPECT_FALSE(world.stopped());
    EXPECT_EQ(stopper.seen, 5 + 20);
  }
}

TEST_P(WorldTest, RunsAgainAfterADeadlock) {
  for (const Schedule schedule : {Schedule::fifo, Schedule::reverse, Schedule::random}) {
    World world(options(2, schedule));
    View<float> x;
    EventId e = 0;
    EXPECT_THROW(world.run([&](Runtime& rt) {
      x = floats(rt, 4);
      e = rt.create_event();
      for (int i = 0; i < 10; ++i) rt.launch(0, AddTo{x, 1});
      if (rt.rank() == 0) rt.launch(0, all_gather_in_place(x, 0, 2));
      rt.launch(0, AddTo{x, 1});
      rt.record(e, 0);
    }),
                 Deadlock);
    world.run([&](Runtime& rt) {
      const StreamId s = rt.create_stream("s");
      rt.wait(s, e);  // its record was dropped with the queue: nothing is left to wait for
      rt.synchronize(e);
      rt.launch(s, SetTo{x.slice(static_cast<uint32_t>(rt.rank()) * 2, 2), 3});
      rt.launch(s, all_gather_in_place(x, rt.rank(), 2));
    });
    for (int r = 0; r < 2; ++r) EXPECT_TRUE(holds(world, r, x, 3));
  }
}

// Collects the marks of a rank and the value that a buffer held at each.
class Marks : public Observer {
 public:
  void before(const OpRef&) override {}
  void after(const OpRef&) override { ++ops; }
  void mark(int rank, const Mark& mark) override {
    if (rank == 1) values.push_back(mark.value);
    ops_before.push_back(ops);
  }
  int ops = 0;
  std::vector<uint64_t> values;
  std::vector<int> ops_before;
};

// More than the queue holds before it drains, so that draining falls between any two calls.
TEST_P(WorldTest, MarksComeInOrderAndWhole) {
  World world(options(2));
  Marks marks;
  world.set_observer(&marks);
  View<float> x;
  world.run([&](Runtime& rt) {
    x = floats(rt, 4);
    for (uint64_t i = 0; i < 3000; ++i) {
      rt.mark(0, {7, 8, i});
      if (i % 3 == 0) rt.launch(0, AddTo{x, 1});
    }
  });
  std::vector<uint64_t> expected(3000);
  std::iota(expected.begin(), expected.end(), 0u);
  EXPECT_EQ(marks.values, expected);
  EXPECT_EQ(marks.ops, 2000);
  EXPECT_TRUE(holds(world, 0, x, 1000));
}

TEST_P(WorldTest, RanksHaveTheirOwnMemoryAndSeeTheirNumber) {
  World world(options(3));
  std::vector<View<float>> views(3);
  world.run([&](Runtime& rt) {
    EXPECT_EQ(rt.world_size(), 3);
    const auto r = static_cast<std::size_t>(rt.rank());
    views[r] = floats(rt, 4);
    rt.launch(0, AddTo{views[r], rt.rank() + 1});
  });
  for (int r = 0; r < 3; ++r) EXPECT_TRUE(holds(world, r, views[static_cast<std::size_t>(r)], r + 1));
}

TEST_P(WorldTest, HostReadsSeeTheirStreamsValue) {
  World world(options(2));
  world.run([&](Runtime& rt) {
    const View<float> x = floats(rt, 1), flag = floats(rt, 1);
    for (int i = 0; i < 6; ++i) {
      rt.launch(0, AddTo{x, 1});
      rt.launch(0, PoisonIf{x, flag, 4});
      EXPECT_EQ(rt.read(0, flag).flagged(), i == 3);
      EXPECT_EQ(rt.read(0, x).value, world.memory_kind() == MemoryKind::host ? i + 1.0 : 0.0);
    }
  });
}

// Executes other bytes, no op or one op twice.
class Changer : public Interposer {
 public:
  int times(const OpRef& op) override { return value(op.op) == 1 ? 0 : value(op.op) == 2 ? 2 : 1; }
  const std::byte* before(const OpRef& op) override {
    if (value(op.op) != 4) return nullptr;
    changed_ = *reinterpret_cast<const AddTo*>(op.op);
    changed_.value = 100;
    return reinterpret_cast<const std::byte*>(&changed_);
  }
  void after(const OpRef& op) override { sum += value(op.op); }
  bool honours_wait(int, const OpType*, bool) override { return true; }
  int sum = 0;

 private:
  static int value(const std::byte* op) { return reinterpret_cast<const AddTo*>(op)->value; }
  AddTo changed_;
};

TEST_P(WorldTest, InterposerChangesWhatIsExecuted) {
  for (const bool in_graph : {false, true}) {
    World world(options());
    Changer changer;
    world.set_interposer(&changer);
    View<float> x;
    world.run([&](Runtime& rt) {
      x = floats(rt, 4);
      const StreamId s = rt.create_stream("s");
      if (in_graph) rt.begin_capture(s);
      for (int value = 1; value <= 4; ++value) rt.launch(s, AddTo{x, value});
      if (in_graph) rt.launch_graph(s, rt.end_capture(s));
    });
    EXPECT_TRUE(holds(world, 0, x, 2 + 2 + 3 + 100));
    EXPECT_EQ(changer.sum, 107);
  }
}

}  // namespace
}  // namespace gatherfuzz
