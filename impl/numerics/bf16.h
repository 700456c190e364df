#pragma once
// bfloat16: the upper half of an IEEE binary32 (1 sign, 8 exponent, 7 significand bits).
// Compare `bits`, not values: the type has no operators on purpose, all arithmetic is done in float.

#include <cstdint>

#include "impl/numerics/host_device.h"

namespace gatherfuzz {

struct bf16 {
  std::uint16_t bits;
};

// Exact for every input, subnormals, infinities and NaN payloads included.
GATHERFUZZ_HD constexpr float to_float(bf16 value) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(value.bits) << 16);
}

// Round to nearest, ties to even; what lies beyond the largest finite value by half a unit or more becomes
// infinite. A NaN keeps its sign and upper payload bits and becomes quiet.
GATHERFUZZ_HD constexpr bf16 to_bf16(float value) {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
  const bool is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  // A carry out of the significand lands in the exponent, which is the next binade or infinity.
  const std::uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet_nan = (bits >> 16) | 0x0040u;
  return bf16{static_cast<std::uint16_t>(is_nan ? quiet_nan : rounded)};
}

}  // namespace gatherfuzz
