#include "impl/numerics/bf16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "impl/numerics/definitions_for_tests.h"

namespace gatherfuzz {
namespace {

TEST(Bf16, EveryValueIsExactAndReturns) {
  int numbers = 0;
  int nans = 0;
  for (int bits = 0; bits < 0x10000; ++bits) {
    const float value = to_float(bf16{static_cast<std::uint16_t>(bits)});
    if (definition::bf16_is_nan(bits)) {
      ++nans;
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_EQ(to_bf16(value).bits, bits | 0x40) << "a NaN must become quiet and keep all else";
    } else {
      ++numbers;
      ASSERT_EQ(static_cast<double>(value), definition::bf16_value(bits)) << bits;
      ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
      ASSERT_EQ(to_bf16(value).bits, bits);
    }
  }
  EXPECT_EQ(nans, 2 * 127);
  EXPECT_EQ(numbers, 0x10000 - 2 * 127);
}

// Every upper half with the lower halves around each decision: exact, above it, around the tie, below the
// next.
TEST(Bf16, RoundsToTheNearestAndTiesToEven) {
  int compared = 0;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const std::uint32_t lower : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      const float value = __builtin_bit_cast(float, upper << 16 | lower);
      const int found = to_bf16(value).bits;
      const int sign = (upper & 0x8000) != 0 ? 0x8000 : 0;
      if (std::isnan(value)) {
        ASSERT_TRUE(definition::bf16_is_nan(found)) << upper << " " << lower;
        ASSERT_EQ(found & 0x8040, sign | 0x40) << "quiet, sign kept";
      } else {
        ASSERT_EQ(found, sign | definition::bf16_nearest(std::fabs(static_cast<double>(value))))
            << upper << " " << lower;
      }
      ++compared;
    }
  }
  EXPECT_EQ(compared, 6 * 0x10000);
}

TEST(Bf16, Edges) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_bf16(infinity).bits, 0x7F80);
  EXPECT_EQ(to_bf16(-infinity).bits, 0xFF80);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()).bits, 0x7F80) << "overflow gives infinity";
  EXPECT_EQ(to_bf16(__builtin_bit_cast(float, 0x7F7F7FFFu)).bits, 0x7F7F) << "largest finite bf16";
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::denorm_min()).bits, 0x0000);
  EXPECT_EQ(to_bf16(-0.0f).bits, 0x8000);
  EXPECT_EQ(to_bf16(__builtin_bit_cast(float, 0xFFFFFFFFu)).bits, 0xFFFF);
  static_assert(to_bf16(1.0f).bits == 0x3F80 && to_float(bf16{0xC000}) == -2.0f);
}

}  // namespace
}  // namespace gatherfuzz
