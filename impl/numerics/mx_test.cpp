#include "impl/numerics/mx.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "impl/numerics/definitions_for_tests.h"

namespace gatherfuzz {
namespace {

constexpr std::uint16_t kOne = 0x3F80;
constexpr std::uint16_t kLargest = 0x7F7F;  // (2 - 2^-7) * 2^127
constexpr std::uint16_t kInf = 0x7F80;
constexpr std::uint16_t kNan = 0x7FC0;
constexpr std::uint16_t kMinus = 0x8000;

struct Quantized {
  int scale;
  std::array<e4m3, kMxBlock> data;
};

// A block that starts with `first` and repeats `rest`.
Quantized quantize(const std::vector<std::uint16_t>& first, std::uint16_t rest, ScaleRounding rounding) {
  std::array<bf16, kMxBlock> source;
  source.fill(bf16{rest});
  for (std::size_t i = 0; i < first.size(); ++i) source[i] = bf16{first[i]};
  Quantized block{};
  block.scale = mx_quantize_block(source.data(), 1, rounding, block.data.data()).bits;
  return block;
}

class MxEdges : public testing::TestWithParam<ScaleRounding> {};

TEST_P(MxEdges, Zeros) {
  const Quantized block = quantize({kMinus}, 0, GetParam());
  EXPECT_EQ(block.scale, 0);
  EXPECT_EQ(block.data[0].bits, 0x80) << "negative zero keeps its sign";
  EXPECT_EQ(block.data[31].bits, 0x00);
}

TEST_P(MxEdges, InfinityTakesTheLargestScaleAndSaturates) {
  const Quantized block = quantize({kInf, kInf | kMinus, kLargest, kOne, kNan}, 0, GetParam());
  EXPECT_EQ(block.scale, 0xFE);
  EXPECT_EQ(block.data[0].bits, 0x7E);
  EXPECT_EQ(block.data[1].bits, 0xFE);
  EXPECT_EQ(block.data[2].bits, 0x40) << "just below 2, with a scale of 2^127";
  EXPECT_EQ(block.data[3].bits, 0x00);
  EXPECT_EQ(block.data[4].bits, 0x7F);
}

TEST_P(MxEdges, NanOnly) {
  const Quantized block = quantize({kNan | kMinus}, kNan, GetParam());
  EXPECT_EQ(block.scale, 0xFF);
  EXPECT_EQ(block.data[0].bits, 0xFF);
  EXPECT_EQ(block.data[31].bits, 0x7F);
}

TEST_P(MxEdges, NanAmongNumbersIsKeptAndNotCounted) {
  const Quantized with = quantize({0x7FFF, 0xFFFF, kOne}, 0x3F00, GetParam());
  const Quantized without = quantize({0, 0, kOne}, 0x3F00, GetParam());
  EXPECT_EQ(with.scale, without.scale);
  EXPECT_EQ(with.data[0].bits, 0x7F);
  EXPECT_EQ(with.data[1].bits, 0xFF);
  for (std::size_t i = 2; i < kMxBlock; ++i) EXPECT_EQ(with.data[i].bits, without.data[i].bits);
}

TEST_P(MxEdges, SubnormalsClampTheScaleAndStayExact) {
  // The smallest bf16 is 2^-133: with the scale 2^-127 it is 2^-6, the smallest normal E4M3.
  const Quantized block = quantize({0x0001, 0x0002, 0x007F}, 0, GetParam());
  EXPECT_EQ(block.scale, 0);
  EXPECT_EQ(block.data[0].bits, 0x08);
  EXPECT_EQ(block.data[1].bits, 0x10);
  EXPECT_EQ(block.data[2].bits, 0x40) << "127 * 2^-6 rounds to 2";
}

INSTANTIATE_TEST_SUITE_P(BothRoundings, MxEdges, testing::Values(ScaleRounding::up, ScaleRounding::floor));

TEST(MxScale, StepsAtSevenEighthsOfABinadeUnderUpOnly) {
  EXPECT_EQ(quantize({0x43E0}, 0, ScaleRounding::up).scale, 127) << "448 just fits";
  EXPECT_EQ(quantize({0x43E1}, 0, ScaleRounding::up).scale, 128) << "the next bf16, 450, does not";
  EXPECT_EQ(quantize({0x43E1}, 0, ScaleRounding::floor).scale, 127);
  EXPECT_EQ(quantize({0x43E1}, 0, ScaleRounding::floor).data[0].bits, 0x7E);
  EXPECT_EQ(quantize({0x43FF}, 0, ScaleRounding::floor).data[0].bits, 0x7E) << "510 saturates";
  EXPECT_EQ(quantize({0x4400}, 0, ScaleRounding::floor).scale, 128);
  EXPECT_EQ(quantize({kLargest}, 0, ScaleRounding::up).scale, 247);
  EXPECT_EQ(quantize({kLargest}, 0, ScaleRounding::floor).scale, 246);
}

TEST(MxBlock, StridesLeaveTheGapsAlone) {
  constexpr int kStride = 3;
  std::vector<bf16> source(kMxBlock * kStride, bf16{kInf});
  std::vector<e4m3> data(kMxBlock * kStride, e4m3{0xAB});
  std::vector<float> values(kMxBlock * kStride, -5.0f);
  for (std::size_t i = 0; i < kMxBlock; ++i) source[i * kStride] = to_bf16(static_cast<float>(i));
  const e8m0 scale = mx_quantize_block(source.data(), kStride, ScaleRounding::up, data.data());
  mx_dequantize_block(data.data(), kStride, scale, values.data());
  EXPECT_EQ(scale.bits, 127 - 3) << "31/448 needs 2^-3";
  for (std::size_t i = 0; i < kMxBlock; ++i) {
    EXPECT_EQ(values[i * kStride], i <= 16 ? i : static_cast<float>(std::nearbyint(i / 2.0)) * 2);
    for (std::size_t gap = 1; gap < kStride; ++gap) {
      EXPECT_EQ(data[i * kStride + gap].bits, 0xAB);
      EXPECT_EQ(values[i * kStride + gap], -5.0f);
    }
  }
}

// Several blocks in both directions, each of its own magnitude: where data and scales lie.
TEST(MxMatrix, LayoutOfBothPlanes) {
  constexpr std::size_t kRows = 64;
  constexpr std::size_t kCols = 96;
  std::vector<bf16> source(kRows * kCols);
  for (std::size_t i = 0; i < source.size(); ++i) {
    source[i] = to_bf16(std::ldexp(static_cast<float>(i % 61) - 30.0f, static_cast<int>(i * 7 % 23) - 11));
  }
  std::vector<e4m3> row_data(source.size()), column_data(source.size());
  std::vector<e8m0> row_scales(kRows * kCols / 32), column_scales(kRows / 32 * kCols);
  mx_quantize_rowwise(source.data(), kRows, kCols, ScaleRounding::up, row_data.data(), row_scales.data());
  mx_quantize_columnwise(source.data(), kRows, kCols, ScaleRounding::up, column_data.data(),
                         column_scales.data());
  std::vector<float> row_values(source.size()), column_values(source.size());
  mx_dequantize_rowwise(row_data.data(), row_scales.data(), kRows, kCols, row_values.data());
  mx_dequantize_columnwise(column_data.data(), column_scales.data(), kRows, kCols, column_values.data());

  int different_planes = 0;
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t c = 0; c < kCols; ++c) {
      std::uint16_t row_block[kMxBlock];
      std::uint16_t column_block[kMxBlock];
      for (std::size_t i = 0; i < kMxBlock; ++i) {
        row_block[i] = source[r * kCols + c / 32 * 32 + i].bits;
        column_block[i] = source[(r / 32 * 32 + i) * kCols + c].bits;
      }
      const definition::Block row = definition::quantize(row_block, true);
      const definition::Block column = definition::quantize(column_block, true);
      const std::size_t at = r * kCols + c;
      ASSERT_EQ(row_scales[r * (kCols / 32) + c / 32].bits, row.scale);
      ASSERT_EQ(column_scales[r / 32 * kCols + c].bits, column.scale);
      ASSERT_EQ(row_data[at].bits, row.data[c % 32]);
      ASSERT_EQ(column_data[at].bits, column.data[r % 32]);
      ASSERT_EQ(row_values[at],
                definition::e4m3_value(row.data[c % 32]) * definition::scale_value(row.scale));
      ASSERT_EQ(column_values[at],
                definition::e4m3_value(column.data[r % 32]) * definition::scale_value(column.scale));
      different_planes += row_values[at] != column_values[at] ? 1 : 0;
    }
  }
  EXPECT_GT(different_planes, 100) << "data on which mixing up the planes would go unseen";
}

}  // namespace
}  // namespace gatherfuzz
