// Training data as a pure function: the same (seed, rank, microbatch, batch, row) gives the same tokens on
// every machine and in every order of calls.
//
// `synthetic`: a noisy Markov chain over the vocabulary, in which three tokens of four follow from the one
// before: a pattern that a small model learns. `text`: windows of a text's bytes at hashed positions; the
// vocabulary is 256.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace gatherfuzz {

// The batch number of the i-th evaluation batch: a stream of its own, apart from training batches (below
// 2^18).
constexpr int32_t evaluation_batch(int32_t i) {
  return i | (1 << 18);
}

// The target of a token that does not count.
inline constexpr int32_t kMaskedTarget = -1;

class Dataset {
 public:
  static Dataset synthetic(int32_t vocab, uint64_t seed);
  // `bytes` must not be empty; windows wrap around its end.
  static Dataset text(std::vector<uint8_t> bytes, uint64_t seed);
  // The same, but of each sequence up to half of the targets are masked, the last ones; how many, its keys
  // say.
  Dataset with_masked_targets() && {
    masks_ = true;
    return std::move(*this);
  }

  // Fills seq tokens and, shifted by one, seq targets, all in [0, vocab) unless masked. `row` is the sequence
  // within the microbatch.
  void sample(int32_t rank, int32_t microbatch, int32_t batch, int32_t row, int32_t seq, int32_t* tokens,
              int32_t* targets) const;

  int32_t vocab() const { return vocab_; }

 private:
  Dataset(int32_t vocab, uint64_t seed) : vocab_(vocab), seed_(seed) {}

  int32_t vocab_;
  uint64_t seed_;
  bool masks_ = false;
  std::vector<uint8_t> text_;  // empty: synthetic
};

}  // namespace gatherfuzz
