#include "reference/formats.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace gatherfuzz::reference {
namespace {

// 2^exponent for -127 (a subnormal) to 128 (infinity: what the E8M0 code 0xFF multiplies NaN with).
constexpr float power_of_two(int exponent) {
  if (exponent == -127) return std::bit_cast<float>(0x00400000u);
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

// Exponent field 0: mantissa * 2^-9. Else (8 + mantissa) * 2^(field - 10). All ones is NaN; no infinity.
constexpr std::array<float, 256> make_e4m3_values() {
  std::array<float, 256> values{};
  for (int code = 0; code < 256; ++code) {
    const int field = (code >> 3) & 15;
    const int mantissa = code & 7;
    float magnitude = field == 0 ? static_cast<float>(mantissa) * power_of_two(-9)
                                 : static_cast<float>(8 + mantissa) * power_of_two(field - 10);
    if ((code & 0x7F) == 0x7F) magnitude = std::numeric_limits<float>::quiet_NaN();
    values[static_cast<std::size_t>(code)] = code < 128 ? magnitude : -magnitude;
  }
  return values;
}
constexpr std::array<float, 256> kE4m3Values = make_e4m3_values();

void quantize_block(const float* block, float* values, std::uint8_t* codes, int stride, std::uint8_t scale) {
  // Both factors are exact powers of two. A product that underflows is far below half of E4M3's least value.
  const float inverse = power_of_two(std::max(127 - scale, -127));
  const float factor = power_of_two(scale - 127);
  for (int i = 0; i < kMxBlock * stride; i += stride) {
    codes[i] = encode_e4m3(block[i] * inverse);
    values[i] = decode_e4m3(codes[i]) * factor;
  }
}

void require_blocks(std::span<const float> values, int rows, int cols, int blocked) {
  if (values.size() != static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols)) {
    throw std::invalid_argument("MX quantize: expected " + std::to_string(rows) + " x " +
                                std::to_string(cols) + " values, found " + std::to_string(values.size()));
  }
  if (blocked % kMxBlock != 0) {
    throw std::invalid_argument("MX quantize: the blocked dimension must be a multiple of 32, found " +
                                std::to_string(blocked));
  }
}

}  // namespace

float round_to_bf16(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) {
    bits |= 0x00400000u;
  } else {
    bits += 0x7FFFu + ((bits >> 16) & 1u);
  }
  return std::bit_cast<float>(bits & 0xFFFF0000u);
}

std::uint8_t encode_e4m3(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const int sign = static_cast<int>(bits >> 31) << 7;
  if (std::isnan(value)) return static_cast<std::uint8_t>(sign | 0x7F);
  const float magnitude = std::min(std::fabs(value), 448.0f);
  // In the binade of 2^exponent the codes are 2^(exponent - 3) apart; below 2^-6 as in its binade.
  const int exponent = std::max(static_cast<int>(std::bit_cast<std::uint32_t>(magnitude) >> 23) - 127, -6);
  constexpr float kRoundToInteger = 8388608.0f;  // 2^23: its unit in the last place is 1
  const float steps = (magnitude * power_of_two(3 - exponent) + kRoundToInteger) - kRoundToInteger;
  // Subnormal codes are 0 to 7 steps; a normal binade starts at 8. Rounding up to 16 is the next binade's 8.
  return static_cast<std::uint8_t>(sign | (((exponent + 6) << 3) + static_cast<int>(steps)));
}

float decode_e4m3(std::uint8_t code) {
  return kE4m3Values[code];
}

std::uint8_t block_scale(const float* block, int stride, ScaleRounding rounding) {
  float amax = -1.0f;  // stays so when all are NaN
  for (int i = 0; i < kMxBlock * stride; i += stride) {
    const float magnitude = std::fabs(block[i]);
    amax = magnitude > amax ? magnitude : amax;  // false for NaN
  }
  if (amax < 0.0f) return 0xFF;
  if (amax == 0.0f) return 0;
  if (std::isinf(amax)) return 0xFE;
  int exponent = 0;
  const float fraction = std::frexp(amax, &exponent);  // amax = fraction * 2^exponent, fraction in [1/2, 1)
  exponent -= 9;                                       // floor(log2 amax) - 8
  // 448 = 0.875 * 2^9: amax / 448 <= 2^exponent exactly when fraction <= 0.875.
  if (rounding == ScaleRounding::up && fraction > 0.875f) ++exponent;
  return static_cast<std::uint8_t>(std::clamp(exponent + 127, 0, 254));
}

MxPlane quantize_rowwise(std::span<const float> values, int rows, int cols, ScaleRounding rounding) {
  require_blocks(values, rows, cols, cols);
  MxPlane plane{std::vector<std::uint8_t>(values.size()), std::vector<std::uint8_t>(values.size() / kMxBlock),
                std::vector<float>(values.size())};
  for (std::size_t block = 0; block < plane.scales.size(); ++block) {
    const std::size_t at = block * kMxBlock;
    plane.scales[block] = block_scale(&values[at], 1, rounding);
    quantize_block(&values[at], &plane.values[at], &plane.codes[at], 1, plane.scales[block]);
  }
  return plane;
}

MxPlane quantize_columnwise(std::span<const float> values, int rows, int cols, ScaleRounding rounding) {
  require_blocks(values, rows, cols, rows);
  MxPlane plane{std::vector<std::uint8_t>(values.size()), std::vector<std::uint8_t>(values.size() / kMxBlock),
                std::vector<float>(values.size())};
  const std::size_t width = static_cast<std::size_t>(cols);
  for (std::size_t block = 0; block < plane.scales.size(); ++block) {
    const std::size_t at = (block / width) * kMxBlock * width + block % width;
    plane.scales[block] = block_scale(&values[at], cols, rounding);
    quantize_block(&values[at], &plane.values[at], &plane.codes[at], cols, plane.scales[block]);
  }
  return plane;
}

}  // namespace gatherfuzz::reference
