#include "impl/kernels/grad_norm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace gatherfuzz {

void add_square(float value, uint64_t* bins) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t exponent = (bits >> 23) & 0xFF;
  if (exponent == 0xFF) {
    ++bins[kNormBins - 1];
    return;
  }
  // value = mantissa * 2^(e - 149), e >= 0
  const uint64_t mantissa = (bits & 0x7FFFFF) | (exponent != 0 ? 0x800000u : 0u);
  const uint32_t e = exponent != 0 ? exponent - 1 : 0;
  const uint64_t square = mantissa * mantissa;  // times 2^(2e - 298)
  const uint32_t group = (2 * e) / 8;
  const uint32_t shift = (2 * e) % 8;
  bins[2 * group] += (square & 0xFFFFFF) << shift;
  bins[2 * group + 1] += (square >> 24) << shift;
}

float norm_of(const uint64_t* bins) {
  if (bins[kNormBins - 1] != 0) return std::numeric_limits<float>::infinity();
  double sum = 0.0;  // from the largest group down; each bin is exact in two halves
  for (int group = static_cast<int>(kNormBins - 1) / 2 - 1; group >= 0; --group) {
    const auto g = static_cast<std::size_t>(group);
    sum += std::ldexp(static_cast<double>(bins[2 * g + 1]), 8 * group + 24 - 298);
    sum += std::ldexp(static_cast<double>(bins[2 * g]), 8 * group - 298);
  }
  return static_cast<float>(std::sqrt(sum));
}

Term square_sum_term(Term value, uint32_t first_byte, uint32_t end_byte) {
  if (value == kZeroTerm) return kZeroTerm;
  return mix(mix("squares"_term, value), end_byte) - mix(mix("squares"_term, value), first_byte);
}

Term norm_term(Term bins) {
  return mix("grad_norm"_term, bins);
}

Term clip_term(Term norm, float clip) {
  return mix(mix("clip_coefficient"_term, scalar_bits(clip)), norm);
}

void AddSquares::host(HostMemory& memory) const {
  const float* values = memory.in<float>(grads);
  uint64_t* sums = memory.out<uint64_t>(bins);
  for (uint32_t i = 0; i < grads.count(); ++i) add_square(values[i], sums);
}

void AddSquares::symbolic(SymbolicMemory& memory) const {
  const Digest before = memory.digest(bins);
  Term sum = before.term;
  uint8_t taint = before.taint;
  memory.pieces(grads, [&](const Segment& piece, uint32_t end) {
    sum += square_sum_term(piece.term, piece.offset, piece.offset + (end - piece.begin));
    taint |= piece.taint;
  });
  memory.assign(bins, sum, kNoLabel, taint);
}

void FinishNorm::host(HostMemory& memory) const {
  *memory.out<float>(norm) = norm_of(memory.in<uint64_t>(bins));
}

void FinishNorm::symbolic(SymbolicMemory& memory) const {
  const Digest sum = memory.digest(bins);
  memory.assign(norm, norm_term(sum.term), kNoLabel, sum.taint);
}

void ClipCoefficient::host(HostMemory& memory) const {
  const float value = *memory.in<float>(norm);
  *memory.out<float>(coefficient) = clip.value > 0.0f ? std::min(1.0f, clip.value / (value + 1e-6f)) : 1.0f;
}

void ClipCoefficient::symbolic(SymbolicMemory& memory) const {
  const Digest value = memory.digest(norm);
  memory.assign(coefficient, clip_term(value.term, clip.value), kNoLabel, value.taint);
}

}  // namespace gatherfuzz
