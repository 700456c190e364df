// Formats against definitions written another way: nearest value by search, scales by repeated doubling.
#include "reference/formats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "reference/test_data.h"

namespace gatherfuzz::reference {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

float bf16_from_bits(std::uint32_t bits) {
  return std::bit_cast<float>(bits << 16);
}

TEST(Bf16, IsTheNearestValueTiesToEven) {
  int compared = 0;
  for (std::uint32_t high = 0; high < 0x7F7F;
       ++high) {  // every finite positive value with a finite successor
    const double below = static_cast<double>(bf16_from_bits(high));
    const double above = static_cast<double>(bf16_from_bits(high + 1));
    for (const std::uint32_t low : {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      const float value = std::bit_cast<float>(high << 16 | low);
      const double x = static_cast<double>(value);
      const bool up = above - x < x - below || (above - x == x - below && high % 2 == 1);
      const float expected = static_cast<float>(up ? above : below);
      ASSERT_EQ(round_to_bf16(value), expected) << std::hexfloat << value;
      ASSERT_EQ(round_to_bf16(-value), -expected);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 0x7F7F * 6);
  EXPECT_EQ(round_to_bf16(std::numeric_limits<float>::max()), kInfinity);
  EXPECT_TRUE(std::isnan(round_to_bf16(std::bit_cast<float>(0x7F800001u))));
}

// The code of the value nearest to magnitude, of two equally near ones the even code.
int nearest_code(double magnitude) {
  int best = 0;
  double distance = std::numeric_limits<double>::infinity();
  for (int code = 0; code <= 0x7E; ++code) {
    const double d = std::fabs(static_cast<double>(decode_e4m3(static_cast<std::uint8_t>(code))) - magnitude);
    if (d < distance || (d == distance && code % 2 == 0)) {
      best = code;
      distance = d;
    }
  }
  return best;
}

TEST(E4m3, EncodesEveryBf16ValueToTheNearestCode) {
  int compared = 0;
  for (std::uint32_t bits = 0; bits <= 0x7F80; ++bits) {
    const float value = bf16_from_bits(bits);
    const int expected = nearest_code(std::fmin(static_cast<double>(value), 448.0));
    ASSERT_EQ(encode_e4m3(value), expected) << value;
    ASSERT_EQ(encode_e4m3(-value), expected | 0x80) << value;
    ++compared;
  }
  EXPECT_EQ(compared, 0x7F81);
  EXPECT_EQ(encode_e4m3(kNan), 0x7F);
  EXPECT_EQ(encode_e4m3(-kNan), 0xFF);
}

TEST(E4m3, DecodesByItsDefinitionAndRoundTrips) {
  for (int code = 0; code < 0x7F; ++code) {
    const int field = code >> 3;
    const int mantissa = code & 7;
    const float value =
        static_cast<float>(field == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, field - 10));
    EXPECT_EQ(decode_e4m3(static_cast<std::uint8_t>(code)), value);
    EXPECT_EQ(decode_e4m3(static_cast<std::uint8_t>(code | 0x80)), -value);
  }
  EXPECT_EQ(decode_e4m3(0x01), 0x1p-9f);
  EXPECT_EQ(decode_e4m3(0x08), 0x1p-6f);
  EXPECT_EQ(decode_e4m3(0x38), 1.0f);
  EXPECT_EQ(decode_e4m3(0xB9), -1.125f);
  EXPECT_EQ(decode_e4m3(0x7E), 448.0f);
  EXPECT_TRUE(std::isnan(decode_e4m3(0x7F)) && std::isnan(decode_e4m3(0xFF)));
  for (int code = 0; code < 256; ++code) {
    EXPECT_EQ(encode_e4m3(decode_e4m3(static_cast<std::uint8_t>(code))), code);
  }
}

std::uint8_t scale_of(float first, float second, ScaleRounding rounding) {
  std::vector<float> block(kMxBlock, second);
  block[7] = first;
  return quantize_rowwise(block, 1, kMxBlock, rounding).scales[0];
}

TEST(MxScale, IsThePowerOfTwoOfItsDefinitionForEveryAmax) {
  int compared = 0;
  for (std::uint32_t bits = 1; bits < 0x7F80; ++bits) {
    const float amax = bf16_from_bits(bits);
    int up = 0;
    for (double power = 0x1p-127; power * 448.0 < static_cast<double>(amax); power *= 2) ++up;
    const int floor =
        std::max(static_cast<int>(std::floor(std::log2(static_cast<double>(amax)))) - 8 + 127, 0);
    ASSERT_EQ(scale_of(-amax, 0.0f, ScaleRounding::up), up) << amax;
    ASSERT_EQ(scale_of(amax, amax / 2, ScaleRounding::floor), floor) << amax;
    ++compared;
  }
  EXPECT_EQ(compared, 0x7F7F);
}

TEST(MxScale, EdgeValues) {
  for (const ScaleRounding rounding : {ScaleRounding::up, ScaleRounding::floor}) {
    EXPECT_EQ(scale_of(0.0f, -0.0f, rounding), 0);
    EXPECT_EQ(scale_of(-kInfinity, 1.0f, rounding), 0xFE);
    EXPECT_EQ(scale_of(kInfinity, kNan, rounding), 0xFE);
    EXPECT_EQ(scale_of(kNan, kNan, rounding), 0xFF);
    EXPECT_EQ(scale_of(kNan, 256.0f, rounding), 127);
    EXPECT_EQ(scale_of(kNan, 0.0f, rounding), 0);
  }
}

TEST(MxQuantize, EveryElementIsTheNearestMultipleOfItsScale) {
  constexpr int kRows = 64;
  constexpr int kCols = 96;
  const auto random = test::random_values(kRows * kCols, 1.0, 3);
  std::vector<float> values;
  for (std::size_t i = 0; i < random.size(); ++i) {
    values.push_back(
        round_to_bf16(static_cast<float>(random[i] * std::exp2(static_cast<double>(i % 23) - 11))));
  }
  int compared = 0;
  for (const ScaleRounding rounding : {ScaleRounding::up, ScaleRounding::floor}) {
    const MxPlane rows = quantize_rowwise(values, kRows, kCols, rounding);
    const MxPlane columns = quantize_columnwise(values, kRows, kCols, rounding);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t row = i / kCols;
      const std::size_t col = i % kCols;
      const auto check = [&](const MxPlane& plane, std::size_t block) {
        const double scale = std::exp2(static_cast<int>(plane.scales[block]) - 127);
        const double scaled = std::fabs(static_cast<double>(values[i])) / scale;
        const int code = nearest_code(std::fmin(scaled, 448.0)) | (std::signbit(values[i]) ? 0x80 : 0);
        ASSERT_EQ(plane.codes[i], code);
        ASSERT_EQ(static_cast<double>(plane.values[i]),
                  static_cast<double>(decode_e4m3(plane.codes[i])) * scale);
        ++compared;
      };
      check(rows, row * (kCols / kMxBlock) + col / kMxBlock);
      check(columns, row / kMxBlock * kCols + col);
    }
  }
  EXPECT_EQ(compared, 2 * 2 * kRows * kCols);
}

TEST(MxQuantize, NonFiniteElements) {
  std::vector<float> values(kMxBlock, 1.0f);
  values[0] = -kInfinity;
  values[1] = kNan;
  const MxPlane plane = quantize_rowwise(values, 1, kMxBlock, ScaleRounding::up);
  EXPECT_EQ(plane.scales[0], 0xFE);
  EXPECT_EQ(plane.codes[0], 0xFE);
  EXPECT_EQ(plane.values[0], -448.0f * 0x1p127f);
  EXPECT_EQ(plane.codes[1], 0x7F);
  EXPECT_TRUE(std::isnan(plane.values[1]));
  EXPECT_EQ(plane.codes[2], 0);
  const std::vector<float> nans(kMxBlock, kNan);
  EXPECT_EQ(quantize_columnwise(nans, kMxBlock, 1, ScaleRounding::floor).codes,
            std::vector<std::uint8_t>(32, 0x7F));
}

TEST(MxQuantize, RefusesShapesThatAreNoMultipleOfTheBlock) {
  const std::vector<float> values(48 * 32);
  EXPECT_THROW(quantize_rowwise(values, 32, 48, ScaleRounding::up), std::invalid_argument);
  EXPECT_THROW(quantize_columnwise(values, 48, 32, ScaleRounding::up), std::invalid_argument);
  EXPECT_THROW(quantize_rowwise(values, 32, 32, ScaleRounding::up), std::invalid_argument);
}

}  // namespace
}  // namespace gatherfuzz::reference
