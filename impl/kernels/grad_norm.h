// The global gradient norm, independent of how gradients are partitioned: squares are added exactly, as
// integers, in bins by exponent, so that bucket size and number of ranks do not change a bit.
#pragma once

#include "impl/runtime/op_type.h"

namespace gatherfuzz {

// Bins of an exact sum of squares of FP32 values. A square is an integer of at most 48 bits times 2^(2e); its
// 24-bit halves, shifted by up to 6 bits, go to one of 64 pairs of bins; the last bin counts values that are
// not finite. Overflow needs more than 2^32 values.
inline constexpr uint32_t kNormBins = 129;
void add_square(float value, uint64_t* bins);
float norm_of(const uint64_t* bins);

// Term of the norm bins of one run of a value: telescopes, so that shards of one parameter add up to the
// whole.
Term square_sum_term(Term value, uint32_t first_byte, uint32_t end_byte);
Term norm_term(Term bins);
Term clip_term(Term norm, float clip);

struct AddSquares {
  static constexpr const char* kName = "grad_norm_partial";
  Read<float, Content::spent> grads;
  Update<uint64_t, Content::scalar> bins;

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

struct FinishNorm {
  static constexpr const char* kName = "grad_norm";
  Read<uint64_t, Content::scalar> bins;
  Write<float, Content::scalar> norm;

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

// coefficient = min(1, clip / (norm + 1e-6)), without a branch; 1 where clip is 0.
struct ClipCoefficient {
  static constexpr const char* kName = "clip_coefficient";
  Read<float, Content::scalar> norm;
  Write<float, Content::scalar> coefficient;
  Coefficient clip{0.0f};

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

}  // namespace gatherfuzz
