#include "impl/runtime/local/fiber.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace gatherfuzz {
namespace {

TEST(FiberTest, RunsInTurns) {
  std::string log;
  Fiber* self = nullptr;
  Fiber fiber([&] {
    log += "a";
    self->leave();
    log += "c";
    self->leave();
    log += "e";
  });
  self = &fiber;
  EXPECT_EQ(log, "");
  fiber.resume();
  log += "b";
  fiber.resume();
  log += "d";
  EXPECT_FALSE(fiber.done());
  fiber.resume();
  EXPECT_TRUE(fiber.done());
  fiber.resume();  // nothing left
  EXPECT_EQ(log, "abcde");
  EXPECT_EQ(fiber.error(), nullptr);
}

TEST(FiberTest, ExceptionArrives) {
  Fiber fiber([] { throw std::runtime_error("from inside"); });
  fiber.resume();
  ASSERT_TRUE(fiber.done());
  try {
    std::rethrow_exception(fiber.error());
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "from inside");
  }
}

struct Counted {
  int& alive;
  explicit Counted(int& count) : alive(count) { ++alive; }
  ~Counted() { --alive; }
};

TEST(FiberTest, CancelRunsDestructors) {
  int alive = 0;
  Fiber* self = nullptr;
  {
    Fiber fiber([&] {
      Counted outer(alive);
      [&] {
        Counted inner(alive);
        self->leave();
        ADD_FAILURE() << "went on";
      }();
    });
    self = &fiber;
    fiber.resume();
    EXPECT_EQ(alive, 2);
  }
  EXPECT_EQ(alive, 0);
}

TEST(FiberTest, CancelOfOneThatNeverStartedOrHasEndedDoesNothing) {
  bool ran = false;
  {
    Fiber fiber([&] { ran = true; });
    fiber.cancel();
    EXPECT_FALSE(fiber.done());
  }
  EXPECT_FALSE(ran);
  Fiber fiber([&] { ran = true; });
  fiber.resume();
  fiber.cancel();
  fiber.cancel();
  EXPECT_TRUE(ran);
}

TEST(FiberTest, LeavingInACancelledFiberDoesNotLeave) {
  struct Leaves {
    Fiber*& fiber;
    int& returned;
    ~Leaves() {
      fiber->leave();
      ++returned;
    }
  };
  int returned = 0, caught = 0;
  Fiber* self = nullptr;
  Fiber fiber([&] {
    for (int i = 0; i < 2; ++i) {
      try {
        Leaves leaves{self, returned};
        self->leave();
      } catch (const FiberCancelled&) {
        ++caught;
      }
    }
  });
  self = &fiber;
  fiber.resume();
  fiber.cancel();
  EXPECT_TRUE(fiber.done());
  EXPECT_EQ(returned, 2);
  EXPECT_EQ(caught, 2);
}

// Two fibers leave inside handlers, so that their exceptions end in an order that is not that of a stack.
TEST(FiberTest, EachHasItsOwnExceptionState) {
  Fiber* fibers[2] = {};
  int correct = 0;
  const auto body = [&](int me) {
    for (int i = 0; i < 10; ++i) {
      try {
        throw me * 100 + i;
      } catch (int value) {
        fibers[me]->leave();
        try {
          throw;
        } catch (int again) {
          fibers[me]->leave();
          correct += value == me * 100 + i && again == value ? 1 : 0;
        }
      }
      EXPECT_EQ(std::current_exception(), nullptr);
    }
  };
  Fiber first([&] { body(0); });
  Fiber second([&] { body(1); });
  fibers[0] = &first;
  fibers[1] = &second;
  for (int turn = 0; !first.done() || !second.done(); ++turn) {
    first.resume();
    if (turn % 3 != 0) second.resume();
    EXPECT_EQ(std::current_exception(), nullptr);
    EXPECT_EQ(std::uncaught_exceptions(), 0);
  }
  EXPECT_EQ(correct, 20);
}

[[gnu::noinline]] int descend(Fiber& fiber, int depth) {
  volatile char frame[256];
  frame[0] = static_cast<char>(depth);
  if (depth == 0) {
    fiber.leave();
    throw depth;
  }
  return descend(fiber, depth - 1) + frame[0];
}

TEST(FiberTest, DeepStacksUnwindAndAreReused) {
  int caught = 0;
  for (int i = 0; i < 20; ++i) {
    Fiber* self = nullptr;
    Fiber fiber([&] {
      try {
        descend(*self, 1000);
      } catch (int) {
        ++caught;
      }
      descend(*self, 500);
    });
    self = &fiber;
    fiber.resume();
    fiber.resume();
    if (i % 2 == 0) fiber.resume();
    EXPECT_EQ(fiber.done(), i % 2 == 0);
    EXPECT_EQ(fiber.error() != nullptr, i % 2 == 0);
  }
  EXPECT_EQ(caught, 20);
}

TEST(FiberDeathTest, OverflowFaults) {
  EXPECT_DEATH(
      {
        Fiber* self = nullptr;
        Fiber fiber([&] { descend(*self, 1 << 24); });
        self = &fiber;
        fiber.resume();
      },
      "");
}

}  // namespace
}  // namespace gatherfuzz
