// Learning rates by hand, and the bits of the reference's.
#include "impl/optimizer/lr_schedule.h"

#include <gtest/gtest.h>

#include <bit>

#include "reference/lr_schedule.h"

namespace gatherfuzz {
namespace {

TEST(LrSchedule, WithoutOneTheRateStays) {
  for (const int taken : {0, 1, 1000000}) EXPECT_EQ(learning_rate(0.001, {}, taken), 0.001);
}

TEST(LrSchedule, WarmupBeginsAtZero) {
  const LrSchedule schedule{4};
  const double expected[] = {0.0, 0.25, 0.5, 0.75, 1.0, 1.0, 1.0};
  for (int taken = 0; taken < 7; ++taken) EXPECT_EQ(learning_rate(1.0, schedule, taken), expected[taken]);
}

TEST(LrSchedule, LinearDecayReachesItsEndAndStays) {
  const LrSchedule schedule{2, LrDecayStyle::linear, 6, 0.5};
  const double expected[] = {0.0, 0.5, 1.0, 0.875, 0.75, 0.625, 0.5, 0.5, 0.5};
  for (int taken = 0; taken < 9; ++taken) EXPECT_EQ(learning_rate(1.0, schedule, taken), expected[taken]);
}

TEST(LrSchedule, CosineDecayIsSymmetric) {
  const LrSchedule schedule{0, LrDecayStyle::cosine, 8, 0.25};
  EXPECT_EQ(learning_rate(1.0, schedule, 0), 1.0);
  EXPECT_NEAR(learning_rate(1.0, schedule, 4), 0.625, 1e-15);
  EXPECT_NEAR(learning_rate(1.0, schedule, 2), 0.625 + 0.375 * 0.70710678118654752, 1e-15);
  for (int taken = 0; taken <= 8; ++taken) {
    EXPECT_NEAR(learning_rate(1.0, schedule, taken) + learning_rate(1.0, schedule, 8 - taken), 1.25, 1e-15);
  }
  EXPECT_EQ(learning_rate(1.0, schedule, 8), 0.25);
  EXPECT_EQ(learning_rate(1.0, schedule, 9), 0.25);
}

TEST(LrSchedule, BitsAreTheReferences) {
  std::size_t compared = 0;
  for (const LrDecayStyle style : {LrDecayStyle::constant, LrDecayStyle::linear, LrDecayStyle::cosine}) {
    for (const int warmup : {0, 1, 3, 7}) {
      for (const int decay : {8, 11, 100}) {
        for (const double least : {0.0, 0.0001, 0.003}) {
          const reference::LrSchedule other{0.003, warmup, static_cast<reference::LrDecayStyle>(style), decay,
                                            least};
          for (int taken = 0; taken < 120; ++taken, ++compared) {
            const double found = learning_rate(0.003, {warmup, style, decay, least}, taken);
            ASSERT_EQ(std::bit_cast<uint64_t>(found),
                      std::bit_cast<uint64_t>(reference::learning_rate(other, taken)));
          }
        }
      }
    }
  }
  EXPECT_EQ(compared, 3u * 4 * 3 * 3 * 120);
}

}  // namespace
}  // namespace gatherfuzz
