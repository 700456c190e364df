#pragma once
// What the formats mean, for tests: every value is spelled with ldexp in double, which holds it exactly, and
// every rounding is a search in the sorted table of representable values. Nothing here uses the code under
// test.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace gatherfuzz::definition {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline double e4m3_value(int code) {
  const int exponent = (code >> 3) & 15;
  const int significand = code & 7;
  if (exponent == 15 && significand == 7) return std::numeric_limits<double>::quiet_NaN();
  const double magnitude =
      exponent == 0 ? std::ldexp(significand, -9) : std::ldexp(8 + significand, exponent - 7 - 3);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

inline double bf16_value(int bits) {
  const int exponent = (bits >> 7) & 255;
  const int significand = bits & 127;
  if (exponent == 255 && significand != 0) return std::numeric_limits<double>::quiet_NaN();
  const double magnitude = exponent == 255 ? kInfinity
                           : exponent == 0 ? std::ldexp(significand, -126 - 7)
                                           : std::ldexp(128 + significand, exponent - 127 - 7);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

inline bool bf16_is_nan(int bits) {
  return std::isnan(bf16_value(bits));
}

// Index of the value nearest to `magnitude`, ties to the even index. `sorted` starts with 0 and ends with a
// value that nothing exceeds; neighbours' means are exact in double.
inline int nearest(const std::vector<double>& sorted, double magnitude) {
  const auto above = std::upper_bound(sorted.begin(), sorted.end(), magnitude);
  if (above == sorted.end()) return static_cast<int>(sorted.size()) - 1;
  const int high = static_cast<int>(above - sorted.begin());
  const int low = high - 1;
  const double middle = (sorted[static_cast<std::size_t>(low)] + *above) / 2;
  if (magnitude == middle) return low % 2 == 0 ? low : high;
  return magnitude < middle ? low : high;
}

// E4M3 code, without sign, of a magnitude that is not NaN: beyond 448 stays 448.
inline int e4m3_nearest(double magnitude) {
  static const std::vector<double> values = [] {
    std::vector<double> all;
    for (int code = 0; code <= 0x7E; ++code) all.push_back(e4m3_value(code));
    return all;
  }();
  return nearest(values, magnitude);
}

// bf16 bits, without sign, of a magnitude that is not NaN. Infinity stands where the format's next value,
// 2^128, would be.
inline int bf16_nearest(double magnitude) {
  static const std::vector<double> values = [] {
    std::vector<double> all;
    for (int bits = 0; bits < 0x7F80; ++bits) all.push_back(bf16_value(bits));
    all.push_back(std::ldexp(1.0, 128));
    return all;
  }();
  return nearest(values, magnitude);
}

inline double scale_value(int code) {
  return std::ldexp(1.0, code - 127);
}

// Smallest power of two that reaches amax with 448 of it.
inline int scale_code_up(double amax) {
  if (amax == kInfinity) return 0xFE;
  int code = 0;
  while (code < 0xFE && amax > 448.0 * scale_value(code)) ++code;
  return code;
}

// The largest power of two that is at most amax, divided by 2^8.
inline int scale_code_floor(double amax) {
  if (amax == 0) return 0;
  if (amax == kInfinity) return 0xFE;
  int exponent = 127;
  while (std::ldexp(1.0, exponent) > amax) --exponent;
  return std::clamp(exponent - 8 + 127, 0, 0xFE);
}

struct Block {
  std::array<std::uint8_t, 32> data;
  std::uint8_t scale;
};

// Quantizes 32 bf16, given as bits.
inline Block quantize(const std::uint16_t* source, bool round_up) {
  double amax = -1;
  for (int i = 0; i < 32; ++i) {
    if (!bf16_is_nan(source[i])) amax = std::max(amax, std::fabs(bf16_value(source[i])));
  }
  Block block{};
  block.scale = static_cast<std::uint8_t>(amax < 0   ? 0xFF
                                          : round_up ? scale_code_up(amax)
                                                     : scale_code_floor(amax));
  for (int i = 0; i < 32; ++i) {
    const int sign = (source[i] & 0x8000) != 0 ? 0x80 : 0;
    const int code = bf16_is_nan(source[i])
                         ? 0x7F
                         : e4m3_nearest(std::fabs(bf16_value(source[i])) / scale_value(block.scale));
    block.data[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(code | sign);
  }
  return block;
}

}  // namespace gatherfuzz::definition
