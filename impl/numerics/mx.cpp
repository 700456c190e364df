#include "impl/numerics/mx.h"

#include <cassert>

#include "impl/numerics/clones.h"

namespace gatherfuzz {
namespace {

// Columnwise blocks are walked 32 columns at a time, row after row: contiguous accesses that vectorize,
// where column after column would touch a cache line for each element.
constexpr int kTileCols = 32;

GATHERFUZZ_CLONES void quantize_tile(const bf16* __restrict__ source, std::int64_t cols,
                                     ScaleRounding rounding, e4m3* __restrict__ data,
                                     e8m0* __restrict__ scales) {
  std::int16_t amax[kTileCols];
  for (int c = 0; c < kTileCols; ++c) amax[c] = kMxNoNumber;
  for (int r = 0; r < kMxBlock; ++r) {
    for (int c = 0; c < kTileCols; ++c) {
      const std::int16_t magnitude = mx_magnitude(source[r * cols + c]);
      amax[c] = magnitude > amax[c] ? magnitude : amax[c];
    }
  }
  float inverse_scale[kTileCols];
  for (int c = 0; c < kTileCols; ++c) {
    scales[c] = mx_scale(amax[c], rounding);
    inverse_scale[c] = to_float(reciprocal(scales[c]));
  }
  for (int r = 0; r < kMxBlock; ++r) {
    for (int c = 0; c < kTileCols; ++c) {
      data[r * cols + c] = mx_element(source[r * cols + c], inverse_scale[c]);
    }
  }
}

GATHERFUZZ_CLONES void dequantize_tile(const e4m3* __restrict__ data, const e8m0* __restrict__ scales,
                                       std::int64_t cols, float* __restrict__ values) {
  float factor[kTileCols];
  for (int c = 0; c < kTileCols; ++c) factor[c] = to_float(scales[c]);
  for (int r = 0; r < kMxBlock; ++r) {
    for (int c = 0; c < kTileCols; ++c) values[r * cols + c] = mx_value(data[r * cols + c], factor[c]);
  }
}

}  // namespace

GATHERFUZZ_CLONES void mx_quantize_rowwise(const bf16* source, std::int64_t rows, std::int64_t cols,
                                           ScaleRounding rounding, e4m3* data, e8m0* scales) {
  assert(rows >= 0 && cols >= 0 && cols % kMxBlock == 0);
  // Blocks follow each other without gaps, and so do their scales: the shape does not matter.
  const std::int64_t num_blocks = rows * (cols / kMxBlock);
  for (std::int64_t b = 0; b < num_blocks; ++b) {
    scales[b] = mx_quantize_block(source + b * kMxBlock, 1, rounding, data + b * kMxBlock);
  }
}

void mx_quantize_columnwise(const bf16* source, std::int64_t rows, std::int64_t cols, ScaleRounding rounding,
                            e4m3* data, e8m0* scales) {
  assert(rows >= 0 && cols >= 0 && rows % kMxBlock == 0 && cols % kTileCols == 0);
  for (std::int64_t r = 0; r < rows; r += kMxBlock) {
    for (std::int64_t c = 0; c < cols; c += kTileCols) {
      const std::int64_t first = r * cols + c;
      quantize_tile(source + first, cols, rounding, data + first, scales + r / kMxBlock * cols + c);
    }
  }
}

GATHERFUZZ_CLONES void mx_dequantize_rowwise(const e4m3* data, const e8m0* scales, std::int64_t rows,
                                             std::int64_t cols, float* values) {
  assert(rows >= 0 && cols >= 0 && cols % kMxBlock == 0);
  const std::int64_t num_blocks = rows * (cols / kMxBlock);
  for (std::int64_t b = 0; b < num_blocks; ++b) {
    mx_dequantize_block(data + b * kMxBlock, 1, scales[b], values + b * kMxBlock);
  }
}

void mx_dequantize_columnwise(const e4m3* data, const e8m0* scales, std::int64_t rows, std::int64_t cols,
                              float* values) {
  assert(rows >= 0 && cols >= 0 && rows % kMxBlock == 0 && cols % kTileCols == 0);
  for (std::int64_t r = 0; r < rows; r += kMxBlock) {
    for (std::int64_t c = 0; c < cols; c += kTileCols) {
      const std::int64_t first = r * cols + c;
      dequantize_tile(data + first, scales + r / kMxBlock * cols + c, cols, values + first);
    }
  }
}

}  // namespace gatherfuzz
