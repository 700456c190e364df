#pragma once
// The two 8-bit formats of an MXFP8 tensor (OCP Microscaling Formats 1.0, OCP 8-bit Floating Point 1.0).
//
//   e4m3  elements: 1 sign, 4 exponent (bias 7), 3 significand bits. Largest finite 448 (0x7E), smallest
//         normal 2^-6 (0x08), smallest subnormal 2^-9 (0x01). No infinities; 0x7F and 0xFF are NaN.
//   e8m0  block scales: code c is 2^(c-127), c in [0, 254]; 0xFF is NaN. No sign, no zero.
//
// All functions need the default floating point environment: nearest rounding, subnormals kept.

#include <cstdint>

#include "impl/numerics/host_device.h"

namespace gatherfuzz {

struct e4m3 {
  std::uint8_t bits;
};

struct e8m0 {
  std::uint8_t bits;
};

// The element conversions choose by arithmetic, not by ?:, which compilers may make a branch of; loops over
// them become vector code even where only SSE2 is at hand. Differences must fit 32 bits.
GATHERFUZZ_HD constexpr std::int32_t smaller_of(std::int32_t a, std::int32_t b) {
  return b + ((a - b) & ((a - b) >> 31));
}
GATHERFUZZ_HD constexpr std::int32_t larger_of(std::int32_t a, std::int32_t b) {
  return a - ((a - b) & ((a - b) >> 31));
}

// Exact for every code; NaN is quiet and keeps its sign.
GATHERFUZZ_HD constexpr float to_float(e4m3 value) {
  const std::int32_t magnitude = value.bits & 0x7F;
  // Subnormals have the exponent of the first normal binade, without the implicit one.
  const std::int32_t exponent = larger_of(magnitude >> 3, 1);
  const std::int32_t significand = magnitude - ((exponent - 1) << 3);  // 8..15, or 0..7 if subnormal
  const float step = __builtin_bit_cast(float, (exponent - 7 - 3 + 127) << 23);
  const std::uint32_t number = __builtin_bit_cast(std::uint32_t, static_cast<float>(significand) * step);
  const std::uint32_t nan = static_cast<std::uint32_t>((0x7E - magnitude) >> 31) & 0x7FC00000u;
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x80) << 24;
  return __builtin_bit_cast(float, number | nan | sign);
}

// The code without sign, 0..0x7F, of a float whose sign bit is clear: round to nearest, ties to even,
// saturating at 448 (infinity too); NaN gives 0x7F.
GATHERFUZZ_HD constexpr std::int32_t e4m3_magnitude_saturate(float magnitude) {
  constexpr std::int32_t kMaxBits = 0x43E00000;           // 448
  constexpr std::int32_t kMinExponent = (127 - 6) << 23;  // 2^-6
  const std::int32_t bits = __builtin_bit_cast(std::int32_t, magnitude);
  // NaN, too, is clamped to 448, whose code is 0x7E: the one after is 0x7F.
  const std::int32_t is_nan = ((0x7F800000 - bits) >> 31) & 1;
  const std::int32_t clamped = smaller_of(bits, kMaxBits);
  // Adding 2^(e+20) to a value of binade e leaves three of its significand bits in the sum, correctly
  // rounded by the addition itself. Below 2^-6 the step stays that of binade -6: the subnormals.
  const std::int32_t exponent = larger_of(clamped & 0x7F800000, kMinExponent);
  const std::int32_t shifter = exponent + (20 << 23);
  const float sum = __builtin_bit_cast(float, clamped) + __builtin_bit_cast(float, shifter);
  const std::int32_t steps = __builtin_bit_cast(std::int32_t, sum) - shifter;  // 8..16, or 0..8 if subnormal
  return ((exponent - kMinExponent) >> 20) + steps + is_nan;
}

// Round to nearest, ties to even; finite values beyond 448 and infinities saturate to +-448; NaN gives 0x7F
// with the sign kept.
GATHERFUZZ_HD constexpr e4m3 to_e4m3_saturate(float value) {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
  const float magnitude = __builtin_bit_cast(float, bits & 0x7FFFFFFFu);
  const std::uint32_t sign = (bits >> 24) & 0x80u;
  return e4m3{
      static_cast<std::uint8_t>(static_cast<std::uint32_t>(e4m3_magnitude_saturate(magnitude)) | sign)};
}

// Exact for every code: code 0 is 2^-127, a subnormal float.
GATHERFUZZ_HD constexpr float to_float(e8m0 scale) {
  const std::uint32_t normal = static_cast<std::uint32_t>(scale.bits) << 23;
  const std::uint32_t finite = scale.bits == 0 ? 0x00400000u : normal;
  return __builtin_bit_cast(float, scale.bits == 0xFF ? 0x7FC00000u : finite);
}

// The scale whose value is 1/value, which E8M0 holds for each of its codes: 2^-(c-127) has code 254-c.
// NaN stays NaN.
GATHERFUZZ_HD constexpr e8m0 reciprocal(e8m0 scale) {
  return e8m0{static_cast<std::uint8_t>(scale.bits == 0xFF ? 0xFF : 254 - scale.bits)};
}

}  // namespace gatherfuzz
