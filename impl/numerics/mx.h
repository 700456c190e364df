#pragma once
// MXFP8 quantization (OCP Microscaling Formats 1.0): 32 E4M3 elements share one E8M0 scale.
//
// A matrix [rows, cols], row-major, is quantized in one of two planes. Both keep the element layout of the
// source, [rows, cols] row-major; they differ in what 32 elements make a block:
//   rowwise     32 consecutive elements of a row;    scales [rows, cols/32]; cols a multiple of 32
//   columnwise  32 consecutive rows of one column;   scales [rows/32, cols]; rows and cols multiples of 32
// The planes are rounded separately: neither can be derived from the other.
//
// Scale of a block: with amax its largest magnitude, NaN ignored and infinity counted,
//   up     the smallest power of two s with amax <= 448*s, so that no finite element saturates;
//   floor  2^(floor(log2(amax)) - 8), where elements above 448*s saturate (the OCP text),
// its exponent clamped to the codes [0, 254]. amax 0 gives code 0, amax infinite 0xFE, a block of NaN only
// 0xFF. Element: E4M3 of value/s, nearest even, saturating; NaN stays NaN, an infinity becomes 448.
//
// Exactness. value/s is computed as value * (1/s), one float multiplication by a power of two: 1/s is the
// scale of code 254-c, which float holds (2^-127, for infinite amax, as a subnormal). A bf16 has 8
// significand bits, so the product is exact unless it overflows or leaves the normal range. It cannot
// overflow: a finite value is below 512*s. Below 2^-126 it may be rounded, and is far under half of
// the smallest E4M3 value (2^-10) before and after: the element is zero either way.

#include <cstddef>
#include <cstdint>

#include "impl/numerics/bf16.h"
#include "impl/numerics/fp8.h"
#include "impl/numerics/host_device.h"

namespace gatherfuzz {

enum class ScaleRounding : std::uint8_t { up, floor };

inline constexpr int kMxBlock = 32;
inline constexpr std::int16_t kMxNoNumber = -1;

// The value's magnitude as a number that orders like it: the bits without sign, 0x7F80 for infinity,
// kMxNoNumber for NaN. The amax of a block is the maximum of these, in any order.
GATHERFUZZ_HD constexpr std::int16_t mx_magnitude(bf16 value) {
  const std::int16_t magnitude = static_cast<std::int16_t>(value.bits & 0x7FFF);
  return magnitude > 0x7F80 ? kMxNoNumber : magnitude;
}

// The scale of a block with this amax, as mx_magnitude gives it.
GATHERFUZZ_HD constexpr e8m0 mx_scale(std::int16_t amax, ScaleRounding rounding) {
  // amax is (1 + m/128) * 2^(E-127), 448 is 1.75 * 2^8: `up` steps on where m > 96, that is where m + 31
  // carries.
  const int exponent = (amax + (rounding == ScaleRounding::up ? 31 : 0)) >> 7;
  const int finite = exponent < 8 ? 0 : exponent - 8;
  const int number = amax == 0x7F80 ? 0xFE : finite;
  return e8m0{static_cast<std::uint8_t>(amax == kMxNoNumber ? 0xFF : number)};
}

// One element, given 1/scale. The sign is taken from the source: products of NaN need not keep it.
GATHERFUZZ_HD constexpr e4m3 mx_element(bf16 value, float inverse_scale) {
  const float magnitude = to_float(bf16{static_cast<std::uint16_t>(value.bits & 0x7FFF)});
  const std::int32_t sign = (value.bits >> 8) & 0x80;
  return e4m3{static_cast<std::uint8_t>(e4m3_magnitude_saturate(magnitude * inverse_scale) | sign)};
}

// One dequantized element, given the scale. Exact in float, and in bf16 too where the block was quantized
// from bf16; values of 2^128 and above, which scale codes from 247 on can reach, give infinity.
GATHERFUZZ_HD constexpr float mx_value(e4m3 element, float scale) {
  return to_float(element) * scale;
}

// Quantizes one block: element i is source[i*stride] and goes to data[i*stride]. Returns the scale.
GATHERFUZZ_HD constexpr e8m0 mx_quantize_block(const bf16* __restrict__ source, std::ptrdiff_t stride,
                                               ScaleRounding rounding, e4m3* __restrict__ data) {
  std::int16_t amax = kMxNoNumber;
  for (int i = 0; i < kMxBlock; ++i) {
    const std::int16_t magnitude = mx_magnitude(source[i * stride]);
    amax = magnitude > amax ? magnitude : amax;
  }
  const e8m0 scale = mx_scale(amax, rounding);
  const float inverse_scale = to_float(reciprocal(scale));
  for (int i = 0; i < kMxBlock; ++i) data[i * stride] = mx_element(source[i * stride], inverse_scale);
  return scale;
}

// Dequantizes one block: element i is data[i*stride] and goes to values[i*stride].
GATHERFUZZ_HD constexpr void mx_dequantize_block(const e4m3* __restrict__ data, std::ptrdiff_t stride,
                                                 e8m0 scale, float* __restrict__ values) {
  const float factor = to_float(scale);
  for (int i = 0; i < kMxBlock; ++i) values[i * stride] = mx_value(data[i * stride], factor);
}

// Whole matrices on the host. Outputs must not overlap inputs; shapes as above, asserted.
void mx_quantize_rowwise(const bf16* source, std::int64_t rows, std::int64_t cols, ScaleRounding rounding,
                         e4m3* data, e8m0* scales);
void mx_quantize_columnwise(const bf16* source, std::int64_t rows, std::int64_t cols, ScaleRounding rounding,
                            e4m3* data, e8m0* scales);
void mx_dequantize_rowwise(const e4m3* data, const e8m0* scales, std::int64_t rows, std::int64_t cols,
                           float* values);
void mx_dequantize_columnwise(const e4m3* data, const e8m0* scales, std::int64_t rows, std::int64_t cols,
                              float* values);

}  // namespace gatherfuzz
