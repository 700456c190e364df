#include "reference/formats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>

#include "reference/clones.h"

namespace gatherfuzz::reference {
namespace {

constexpr std::int32_t kInfinityBits = 0x7F800000;  // those of NaN are greater
constexpr std::int32_t kQuietNanBits = 0x7FC00000;

// 2^exponent for -127 (a subnormal) to 128 (infinity: what the E8M0 code 0xFF multiplies NaN with).
constexpr float power_of_two(int exponent) {
  return std::bit_cast<float>(exponent == -127 ? 0x00400000 : (exponent + 127) << 23);
}

}  // namespace

// Without branches, so that loops over it become vector code. Magnitudes order as their bits do.
std::uint8_t encode_e4m3(float value) {
  const std::int32_t bits = std::bit_cast<std::int32_t>(value);
  const std::int32_t magnitude_bits = bits & 0x7FFFFFFF;
  const float magnitude = std::bit_cast<float>(std::min(magnitude_bits, std::bit_cast<std::int32_t>(448.0f)));
  // In the binade of 2^exponent the codes are 2^(exponent - 3) apart; below 2^-6 as in its binade.
  const int exponent = (std::bit_cast<std::int32_t>(std::max(magnitude, 0x1p-6f)) >> 23) - 127;
  constexpr float kRoundToInteger = 8388608.0f;  // 2^23: its unit in the last place is 1
  const float steps = (magnitude * power_of_two(3 - exponent) + kRoundToInteger) - kRoundToInteger;
  // Subnormal codes are 0 to 7 steps; a normal binade starts at 8. Rounding up to 16 is the next binade's 8.
  const int code = ((exponent + 6) << 3) + static_cast<int>(steps);
  // A NaN went the way of 448, to 0x7E: its own code is the next.
  const int is_nan = magnitude_bits > kInfinityBits ? 1 : 0;
  return static_cast<std::uint8_t>(((bits >> 24) & 0x80) | (code + is_nan));
}

// A code is laid out like the upper bits of a float, except that its exponent's bias is 7, not 127.
float decode_e4m3(std::uint8_t code) {
  const std::int32_t magnitude = code & 0x7F;
  const float number = std::bit_cast<float>(magnitude << 20) * 0x1p120f;  // subnormals too
  const std::int32_t nan = magnitude == 0x7F ? kQuietNanBits : 0;
  const std::int32_t sign = (code & 0x80) << 24;
  return std::bit_cast<float>(std::bit_cast<std::int32_t>(number) | nan | sign);
}

namespace {

// The magnitude's bits; -1 for NaN.
std::int32_t magnitude_order(float value) {
  const std::int32_t bits = std::bit_cast<std::int32_t>(value) & 0x7FFFFFFF;
  return bits > kInfinityBits ? -1 : bits;
}

// The E8M0 code of a block from its largest magnitude_order.
std::uint8_t block_scale(std::int32_t amax_order, ScaleRounding rounding) {
  if (amax_order < 0) return 0xFF;
  const float amax = std::bit_cast<float>(amax_order);
  if (amax == 0.0f) return 0;
  if (std::isinf(amax)) return 0xFE;
  int exponent = 0;
  const float fraction = std::frexp(amax, &exponent);  // amax = fraction * 2^exponent, fraction in [1/2, 1)
  exponent -= 9;                                       // floor(log2 amax) - 8
  // 448 = 0.875 * 2^9: amax / 448 <= 2^exponent exactly when fraction <= 0.875.
  if (rounding == ScaleRounding::up && fraction > 0.875f) ++exponent;
  return static_cast<std::uint8_t>(std::clamp(exponent + 127, 0, 254));
}

// Element c is multiplied by inverse[c * step], the decoded one by factor[c * step].
[[gnu::always_inline]] inline void quantize_row(const float* __restrict__ row, int size, const float* inverse,
                                                const float* factor, int step,
                                                std::uint8_t* __restrict__ codes,
                                                float* __restrict__ values) {
  for (int c = 0; c < size; ++c) codes[c] = encode_e4m3(row[c] * inverse[c * step]);
  for (int c = 0; c < size; ++c) values[c] = decode_e4m3(codes[c]) * factor[c * step];
}

// Powers of two, so that products with them are exact. One that underflows is far below half of E4M3's least
// value.
float inverse_of(int scale) {
  return power_of_two(std::max(127 - scale, -127));
}
float factor_of(int scale) {
  return power_of_two(scale - 127);
}

MxPlane empty_plane(std::size_t size) {
  return {std::vector<std::uint8_t>(size), std::vector<std::uint8_t>(size / kMxBlock),
          std::vector<float>(size)};
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

GATHERFUZZ_REFERENCE_CLONES
MxPlane quantize_rowwise(std::span<const float> values, int rows, int cols, ScaleRounding rounding) {
  require_blocks(values, rows, cols, cols);
  MxPlane plane = empty_plane(values.size());
  for (std::size_t block = 0; block < plane.scales.size(); ++block) {
    const std::size_t at = block * kMxBlock;
    std::int32_t amax = -1;
    for (std::size_t i = at; i < at + kMxBlock; ++i) amax = std::max(amax, magnitude_order(values[i]));
    const std::uint8_t scale = block_scale(amax, rounding);
    const float inverse = inverse_of(scale);
    const float factor = factor_of(scale);
    quantize_row(&values[at], kMxBlock, &inverse, &factor, 0, &plane.codes[at], &plane.values[at]);
    plane.scales[block] = scale;
  }
  return plane;
}

GATHERFUZZ_REFERENCE_CLONES
MxPlane quantize_columnwise(std::span<const float> values, int rows, int cols, ScaleRounding rounding) {
  require_blocks(values, rows, cols, rows);
  MxPlane plane = empty_plane(values.size());
  const std::size_t width = static_cast<std::size_t>(cols);
  std::vector<std::int32_t> amax(width);
  std::vector<float> inverse(width), factor(width);
  std::uint8_t* scales = plane.scales.data();
  for (std::size_t begin = 0; begin < values.size(); begin += kMxBlock * width, scales += width) {
    const std::size_t end = begin + kMxBlock * width;
    std::fill(amax.begin(), amax.end(), -1);
    for (std::size_t row = begin; row < end; row += width)
      for (std::size_t c = 0; c < width; ++c) amax[c] = std::max(amax[c], magnitude_order(values[row + c]));
    for (std::size_t c = 0; c < width; ++c) {
      scales[c] = block_scale(amax[c], rounding);
      inverse[c] = inverse_of(scales[c]);
      factor[c] = factor_of(scales[c]);
    }
    for (std::size_t row = begin; row < end; row += width)
      quantize_row(&values[row], cols, inverse.data(), factor.data(), 1, &plane.codes[row],
                   &plane.values[row]);
  }
  return plane;
}

}  // namespace gatherfuzz::reference
