#include "impl/numerics/fp8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "impl/numerics/definitions_for_tests.h"

namespace gatherfuzz {
namespace {

TEST(E4m3, EveryCodeIsExactAndReturns) {
  int numbers = 0;
  for (int code = 0; code < 256; ++code) {
    const float value = to_float(e4m3{static_cast<std::uint8_t>(code)});
    ASSERT_EQ(std::signbit(value), code >= 0x80) << code;
    ASSERT_EQ(to_e4m3_saturate(value).bits, code);
    if ((code & 0x7F) == 0x7F) {
      ASSERT_TRUE(std::isnan(value)) << code;
    } else {
      ASSERT_EQ(static_cast<double>(value), definition::e4m3_value(code)) << code;
      ++numbers;
    }
  }
  EXPECT_EQ(numbers, 254);
}

// Every upper half of a float with lower halves that lie on, above and below it. All ties of E4M3 have a
// lower half of zero, so each tie is met, and its two neighbours.
TEST(E4m3, RoundsToTheNearestAndTiesToEvenAndSaturates) {
  int compared = 0;
  int saturated = 0;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const std::uint32_t lower : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      const float value = __builtin_bit_cast(float, upper << 16 | lower);
      const double magnitude = std::fabs(static_cast<double>(value));
      const int code = std::isnan(value) ? 0x7F : definition::e4m3_nearest(magnitude);
      const int sign = (upper & 0x8000) != 0 ? 0x80 : 0;
      ASSERT_EQ(to_e4m3_saturate(value).bits, sign | code) << value;
      saturated += magnitude > 448.0 ? 1 : 0;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 6 * 0x10000);
  EXPECT_GT(saturated, 100000);
}

TEST(E4m3, Edges) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(to_e4m3_saturate(infinity).bits, 0x7E);
  EXPECT_EQ(to_e4m3_saturate(-infinity).bits, 0xFE);
  EXPECT_EQ(to_e4m3_saturate(std::numeric_limits<float>::max()).bits, 0x7E);
  EXPECT_EQ(to_e4m3_saturate(464.0f).bits, 0x7E) << "midway to 480, which the format lacks";
  EXPECT_EQ(to_e4m3_saturate(nan).bits, 0x7F);
  EXPECT_EQ(to_e4m3_saturate(-nan).bits, 0xFF);
  EXPECT_EQ(to_e4m3_saturate(-0.0f).bits, 0x80);
  EXPECT_EQ(to_e4m3_saturate(0x1p-10f).bits, 0x00) << "a tie between 0 and the smallest subnormal";
  EXPECT_EQ(to_e4m3_saturate(0x1.000002p-10f).bits, 0x01);
  EXPECT_EQ(to_e4m3_saturate(0x1.Ep-7f).bits, 0x08) << "the largest subnormal rounds into the normals";
  static_assert(to_e4m3_saturate(1.0f).bits == 0x38 && to_float(e4m3{0x7E}) == 448.0f);
}

TEST(E8m0, EveryCodeIsExactAndHasAReciprocal) {
  int powers = 0;
  for (int code = 0; code < 255; ++code) {
    const e8m0 scale{static_cast<std::uint8_t>(code)};
    ASSERT_EQ(static_cast<double>(to_float(scale)), std::ldexp(1.0, code - 127)) << code;
    ASSERT_EQ(static_cast<double>(to_float(reciprocal(scale))), std::ldexp(1.0, 127 - code)) << code;
    ++powers;
  }
  EXPECT_EQ(powers, 255);
  EXPECT_TRUE(std::isnan(to_float(e8m0{0xFF})));
  EXPECT_EQ(reciprocal(e8m0{0xFF}).bits, 0xFF);
  static_assert(to_float(e8m0{0}) == 0x1p-127f);
}

}  // namespace
}  // namespace gatherfuzz
