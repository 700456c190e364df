#include "impl/kernels/dataset.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace gatherfuzz {

namespace {

// One step of SplitMix64 (Steele, Lea and Flood 2014) from a state that `value` is mixed into.
uint64_t hash(uint64_t state, uint64_t value) {
  uint64_t z = (state ^ value) + 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

int32_t below(uint64_t hashed, uint64_t limit) {
  return static_cast<int32_t>((hashed >> 11) % limit);
}

// The likely follower of a token: fixed for a dataset.
int32_t follower(int32_t token, int32_t vocab, uint64_t seed) {
  return below(hash(seed, static_cast<uint64_t>(token)), static_cast<uint64_t>(vocab));
}

}  // namespace

Dataset Dataset::synthetic(int32_t vocab, uint64_t seed) {
  assert(vocab > 0);
  return Dataset(vocab, seed);
}

Dataset Dataset::text(std::vector<uint8_t> bytes, uint64_t seed) {
  assert(!bytes.empty());
  Dataset dataset(256, seed);
  dataset.text_ = std::move(bytes);
  return dataset;
}

void Dataset::sample(int32_t rank, int32_t microbatch, int32_t batch, int32_t row, int32_t seq,
                     int32_t* tokens, int32_t* targets) const {
  uint64_t state = hash(seed_, 0x73616D706C65u);
  for (const int32_t key : {rank, microbatch, batch, row}) state = hash(state, static_cast<uint64_t>(key));
  const std::size_t start = text_.empty() ? 0 : state % text_.size();
  const int32_t masked = masks_ ? below(hash(state, 0x6D61736Bu), static_cast<uint64_t>(seq / 2 + 1)) : 0;
  int32_t token = below(state, static_cast<uint64_t>(vocab_));
  for (int32_t i = 0; i <= seq; ++i) {
    if (!text_.empty()) {
      token = text_[(start + static_cast<std::size_t>(i)) % text_.size()];
    } else if (i > 0) {
      state = hash(state, static_cast<uint64_t>(i));
      const bool noise = state % 4 == 0;
      token = noise ? below(state, static_cast<uint64_t>(vocab_)) : follower(token, vocab_, seed_);
    }
    if (i < seq) tokens[i] = token;
    if (i > 0) targets[i - 1] = token;
  }
  std::fill_n(targets + (seq - masked), masked, kMaskedTarget);
}

}  // namespace gatherfuzz
