#include "reference/lr_schedule.h"

#include <gtest/gtest.h>

namespace gatherfuzz::reference {
namespace {

TEST(LrSchedule, WarmupThenConstant) {
  const LrSchedule schedule{0.5, 2};
  EXPECT_EQ(learning_rate(schedule, 0), 0.0);
  EXPECT_EQ(learning_rate(schedule, 1), 0.25);
  EXPECT_EQ(learning_rate(schedule, 2), 0.5);
  EXPECT_EQ(learning_rate(schedule, 1000), 0.5);
}

TEST(LrSchedule, LinearDecay) {
  const LrSchedule schedule{1.0, 0, LrDecayStyle::linear, 4, 0.5};
  EXPECT_EQ(learning_rate(schedule, 0), 1.0);
  EXPECT_EQ(learning_rate(schedule, 1), 0.875);
  EXPECT_EQ(learning_rate(schedule, 3), 0.625);
  EXPECT_EQ(learning_rate(schedule, 4), 0.5);
  EXPECT_EQ(learning_rate(schedule, 5), 0.5);
}

// After a third of the decay cos is 1/2, so that three quarters are left.
TEST(LrSchedule, CosineDecay) {
  const LrSchedule schedule{1.0, 3, LrDecayStyle::cosine, 9, 0.0};
  EXPECT_EQ(learning_rate(schedule, 3), 1.0);
  EXPECT_NEAR(learning_rate(schedule, 5), 0.75, 1e-15);
  EXPECT_NEAR(learning_rate(schedule, 6), 0.5, 1e-15);
  EXPECT_NEAR(learning_rate(schedule, 7), 0.25, 1e-15);
  EXPECT_EQ(learning_rate(schedule, 9), 0.0);
}

// Between warmup and end it only falls.
TEST(LrSchedule, DecayIsMonotone) {
  for (const LrDecayStyle style : {LrDecayStyle::linear, LrDecayStyle::cosine}) {
    const LrSchedule schedule{0.003, 10, style, 100, 0.0001};
    for (int taken = 10; taken < 120; ++taken) {
      EXPECT_GE(learning_rate(schedule, taken), learning_rate(schedule, taken + 1)) << taken;
      EXPECT_GE(learning_rate(schedule, taken), schedule.min_lr);
      EXPECT_LE(learning_rate(schedule, taken), schedule.lr);
    }
  }
}

}  // namespace
}  // namespace gatherfuzz::reference
