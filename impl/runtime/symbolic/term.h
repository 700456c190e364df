// Terms: what a byte range holds, as an element of the group Z/2^64. Zero is 0, accumulation is +, scaling is
// multiplication by an odd constant (so scaling before a sum equals averaging after it, and scaling twice or
// never differs); every other operation hashes its inputs into the group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gatherfuzz {

using Term = uint64_t;

inline constexpr Term kZeroTerm = 0;
inline constexpr Term kUninitialized = 0x756e696e69745f5fULL;

constexpr Term mix(Term a, Term b) {
  uint64_t x = (a ^ (b * 0x9E3779B97F4A7C15ULL)) + 0x2545F4914F6CDD1DULL;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93ULL;
  x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9ULL;
  return x ^ (x >> 32);
}

constexpr Term term_of(const char* name) {
  Term t = 0xCBF29CE484222325ULL;
  for (; *name != 0; ++name) t = (t ^ static_cast<uint8_t>(*name)) * 0x100000001B3ULL;
  return mix(t, 1);
}

// term_of a name in the source, worked out by the compiler.
consteval Term operator""_term(const char* name, std::size_t) {
  return term_of(name);
}

// The odd constant that stands for multiplication by `factor`; 1 for 1.0f.
inline Term scale_term(float factor) {
  if (factor == 1.0f) return 1;
  uint32_t bits = 0;
  std::memcpy(&bits, &factor, sizeof bits);
  return mix("scale"_term, bits) | 1;
}

// A label says whose data an activation derives from: rank, microbatch and batch, or nothing, or a mixture.
using Label = uint32_t;
inline constexpr Label kNoLabel = 0;
inline constexpr Label kMixedLabel = 0xFFFFFFFFu;

constexpr Label make_label(uint32_t rank, uint32_t microbatch, uint32_t batch) {
  return 1u + (rank & 0xFu) + ((microbatch & 0xFFu) << 4) + ((batch & 0x7FFFFu) << 12);
}
constexpr Label join_labels(Label a, Label b) {
  if (a == b || b == kNoLabel) return a;
  return a == kNoLabel ? b : kMixedLabel;
}

}  // namespace gatherfuzz
