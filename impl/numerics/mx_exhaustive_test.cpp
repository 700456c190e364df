// Every bf16 as the amax of a block and as an element under every scale, and every pair of codes dequantized,
// against the definitions; and what a second quantize does.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "impl/numerics/definitions_for_tests.h"
#include "impl/numerics/mx.h"
#include "impl/numerics/mx_checker.h"

namespace gatherfuzz {
namespace {

class MxExhaustive : public testing::TestWithParam<ScaleRounding> {
 protected:
  bool up() const { return GetParam() == ScaleRounding::up; }
};

// A block whose amax is |amax|, at a place that moves, among smaller values of either sign and a NaN here and
// there.
std::array<std::uint16_t, kMxBlock> block_with_amax(int amax) {
  const int limit = (amax & 0x7FFF) + 1;
  std::array<std::uint16_t, kMxBlock> block;
  for (int i = 0; i < kMxBlock; ++i) {
    const int near = limit - 1 - (i * i * 5 + amax) % 1024;  // within a few binades of amax
    const int any = (i * 7919 + amax * 31) % limit;
    const int magnitude = i % 2 == 0 && near >= 0 ? near : any;
    block[static_cast<std::size_t>(i)] = static_cast<std::uint16_t>(magnitude | (i % 3 == 0 ? 0x8000 : 0));
  }
  if (amax % 5 == 0) block[static_cast<std::size_t>((amax + 9) % kMxBlock)] = 0x7FC1;
  block[static_cast<std::size_t>(amax % kMxBlock)] = static_cast<std::uint16_t>(amax);
  return block;
}

TEST_P(MxExhaustive, ScaleOfEveryAmax) {
  int compared = 0;
  for (int bits = 0; bits < 0x10000; ++bits) {
    const double amax = std::fabs(definition::bf16_value(bits));
    const int expected = std::isnan(amax) ? 0xFF
                         : up()           ? definition::scale_code_up(amax)
                                          : definition::scale_code_floor(amax);
    const bf16 value{static_cast<std::uint16_t>(bits)};
    ASSERT_EQ(mx_scale(mx_magnitude(value), GetParam()).bits, expected) << bits;
    ++compared;
  }
  EXPECT_EQ(compared, 0x10000);
}

TEST_P(MxExhaustive, EveryValueAsAmaxInBothPlanes) {
  MxChecker checker(GetParam());
  for (int bits = 0; bits < 0x10000; ++bits) checker.add(block_with_amax(bits));
  checker.finish();
  EXPECT_TRUE(checker.result());
  EXPECT_EQ(checker.compared(), 0x10000 * kMxBlock);
  std::printf("%lld elements compared in each plane\n", static_cast<long long>(checker.compared()));
}

// For every scale code, the largest amax that has it, together with every value up to that amax and every
// NaN.
TEST_P(MxExhaustive, EveryScaleWithEveryElementInBothPlanes) {
  std::vector<int> amax_of_code(256, -1);
  for (int bits = 0; bits <= 0x7F80; ++bits) {
    const double amax = definition::bf16_value(bits);
    const int code = up() ? definition::scale_code_up(amax) : definition::scale_code_floor(amax);
    amax_of_code[static_cast<std::size_t>(code)] = bits;
  }
  MxChecker checker(GetParam());
  int codes = 0;
  std::int64_t elements = 0;
  for (const int amax : amax_of_code) {
    if (amax < 0) continue;
    ++codes;
    std::array<std::uint16_t, kMxBlock> block{static_cast<std::uint16_t>(amax)};
    std::size_t filled = 1;
    for (int bits = 0; bits < 0x10000; ++bits) {
      const int magnitude = bits & 0x7FFF;
      if (magnitude > amax && magnitude <= 0x7F80) continue;
      block[filled++] = static_cast<std::uint16_t>(bits);
      ++elements;
      if (filled < kMxBlock) continue;
      checker.add(block);
      filled = 1;
    }
    checker.add(block);  // the last few, with what an earlier block left behind them
  }
  checker.finish();
  EXPECT_TRUE(checker.result());
  EXPECT_EQ(codes, up() ? 249 : 248) << "0..247 (0..246) of finite amax, and 254";
  EXPECT_GT(checker.compared(), elements);
  std::printf("%d scale codes, %lld elements under them\n", codes, static_cast<long long>(elements));
}

INSTANTIATE_TEST_SUITE_P(BothRoundings, MxExhaustive,
                         testing::Values(ScaleRounding::up, ScaleRounding::floor));

TEST(MxDequantize, EveryPairOfCodesInBothPlanes) {
  constexpr std::size_t kCodes = 256;
  int compared = 0;
  for (std::size_t scale = 0; scale < kCodes; ++scale) {
    // Rowwise one row of eight blocks, columnwise [32, 256] with the codes along the row.
    std::vector<e4m3> data(kMxBlock * kCodes);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = e4m3{static_cast<std::uint8_t>(i % kCodes)};
    const std::vector<e8m0> scales(kCodes, e8m0{static_cast<std::uint8_t>(scale)});
    std::vector<float> row(kCodes);
    std::vector<float> column(data.size());
    mx_dequantize_rowwise(data.data(), scales.data(), 1, kCodes, row.data());
    mx_dequantize_columnwise(data.data(), scales.data(), kMxBlock, kCodes, column.data());
    for (std::size_t code = 0; code < kCodes; ++code) {
      const double element = definition::e4m3_value(static_cast<int>(code));
      const double expected = std::ldexp(element, static_cast<int>(scale) - 127);
      for (const float found : {row[code], column[code], column[31 * kCodes + code]}) {
        if (scale == 0xFF || std::isnan(element)) {
          ASSERT_TRUE(std::isnan(found)) << code << " " << scale;
        } else if (std::fabs(expected) >= 0x1p128) {
          ASSERT_EQ(found, std::copysign(definition::kInfinity, expected)) << code << " " << scale;
        } else {
          ASSERT_EQ(static_cast<double>(found), expected) << code << " " << scale;
          ASSERT_EQ(std::signbit(found), code >= 0x80);
        }
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 256 * 256 * 3);
}

// A second quantize changes no value. Blocks whose values overflow float on the way are set aside (infinite
// amax, and finite ones that round up to 2^128), since an infinity asks for another scale.
TEST_P(MxExhaustive, SecondQuantizeChangesNoValue) {
  int kept = 0;
  int fell = 0;
  int overflowed = 0;
  for (int bits = 0; bits < 0x10000; ++bits) {
    std::vector<bf16> source;
    for (const std::uint16_t element : block_with_amax(bits)) source.push_back(bf16{element});
    std::vector<e4m3> data(kMxBlock), again(kMxBlock);
    std::vector<float> values(kMxBlock), values_again(kMxBlock);
    const e8m0 scale = mx_quantize_block(source.data(), 1, GetParam(), data.data());
    mx_dequantize_block(data.data(), 1, scale, values.data());
    int largest_code = 0;
    bool overflow = false;
    for (std::size_t i = 0; i < kMxBlock; ++i) {
      const int code = data[i].bits & 0x7F;
      if (code != 0x7F) largest_code = std::max(largest_code, code);
      overflow = overflow || std::isinf(values[i]);
      source[i] = to_bf16(values[i]);
      ASSERT_TRUE(to_float(source[i]) == values[i] || std::isnan(values[i])) << values[i] << " is no bf16";
    }
    if (overflow) {
      ++overflowed;
      continue;
    }
    const e8m0 scale_again = mx_quantize_block(source.data(), 1, GetParam(), again.data());
    mx_dequantize_block(again.data(), 1, scale_again, values_again.data());
    for (std::size_t i = 0; i < kMxBlock; ++i) {
      ASSERT_TRUE(values_again[i] == values[i] || (std::isnan(values_again[i]) && std::isnan(values[i])));
      ASSERT_EQ(std::signbit(values_again[i]), std::signbit(values[i]));
    }
    const bool largest_is_224 = definition::e4m3_value(largest_code) == 224.0;
    const bool falls = up() && largest_is_224 && scale.bits > 0;
    ASSERT_EQ(scale_again.bits, scale.bits - (falls ? 1 : 0)) << bits << ", largest code " << largest_code;
    (falls ? fell : kept) += 1;
  }
  EXPECT_EQ(kept + fell + overflowed, 0x10000);
  EXPECT_GT(kept, 50000);
  EXPECT_EQ(fell > 1000, up());
  EXPECT_LT(overflowed, 500);
  std::printf("scale kept %d times, one lower %d times, overflowed %d times\n", kept, fell, overflowed);
}

}  // namespace
}  // namespace gatherfuzz
