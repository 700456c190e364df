// The reference's number formats, from their definitions: bf16, OCP FP8 E4M3, and OCP MX blocks of 32 E4M3
// elements that share one E8M0 scale (a power of two, 2^(code - 127)).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace gatherfuzz::reference {

inline constexpr int kMxBlock = 32;

// up: the smallest power of two >= amax / 448, so that nothing saturates (training practice).
// floor: 2^(floor(log2 amax) - 8), so that values above 448 times it saturate (the OCP text).
enum class ScaleRounding { up, floor };

// Nearest bf16 value, ties to even. A NaN becomes a quiet NaN of the same sign. Without branches: loops over
// it become vector code.
inline float round_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7FFFu + ((bits >> 16) & 1u);
  const std::uint32_t quiet = bits | 0x00400000u;
  return std::bit_cast<float>((std::isnan(value) ? quiet : rounded) & 0xFFFF0000u);
}

// Nearest E4M3 code, ties to even. Beyond +-448 (infinities too) saturates; NaN becomes 0x7F with its sign.
std::uint8_t encode_e4m3(float value);
float decode_e4m3(std::uint8_t code);

// One plane of an MX tensor [rows, cols]: rowwise blocks run along a row, scales [rows, cols / 32];
// columnwise blocks run down a column, scales [rows / 32, cols]. Codes and values are row-major in both.
// A scale's E8M0 code follows from its block's amax, which ignores NaN: amax 0 gives 0, infinite amax 0xFE, a
// block of NaN only 0xFF.
struct MxPlane {
  std::vector<std::uint8_t> codes;
  std::vector<std::uint8_t> scales;
  std::vector<float> values;  // decode(code) * 2^(scale - 127), exact
};

// Throw std::invalid_argument when the blocked dimension is not a multiple of 32.
MxPlane quantize_rowwise(std::span<const float> values, int rows, int cols, ScaleRounding rounding);
MxPlane quantize_columnwise(std::span<const float> values, int rows, int cols, ScaleRounding rounding);

}  // namespace gatherfuzz::reference
