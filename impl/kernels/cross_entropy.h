// Softmax cross entropy over the vocabulary, and its gradient. The row maxima and sums are kept in FP32 for
// backward.
#pragma once

#include "impl/runtime/op_type.h"

namespace gatherfuzz {

// max = max over v of l; sum = sum over v of exp(l - max); loss = (sum over t of ((log(sum) + max) -
// l[target])) / T. A target outside the vocabulary gives a NaN loss. With `per_token` the loss is not
// divided, and tokens of masked targets (dataset.h) have none.
struct CrossEntropy {
  static constexpr const char* kName = "cross_entropy";
  Read<real> logits;  // [tokens, vocab]
  Read<int32_t, Content::batch> targets;
  Write<float, Content::scalar> loss;  // one value, unscaled
  Write<float> row_max;                // [tokens]
  Write<float> row_sum;                // [tokens]
  bool per_token = false;

  void host(HostMemory& memory) const;
};

// dlogits = round((exp(l - max) / sum - onehot) * (coefficient / T)), with `per_token` not divided by T, and
// zero for tokens of masked targets; `injection` (zero, or what a test wants
// to see spread, such as infinity) is added to dlogits[0, 0] before it is rounded.
struct CrossEntropyBackward {
  static constexpr const char* kName = "cross_entropy_backward";
  Read<real> logits;
  Read<int32_t, Content::batch> targets;
  Read<float> row_max;
  Read<float> row_sum;
  Read<float> injection;  // one value
  Write<real> dlogits;
  Coefficient coefficient;
  bool per_token = false;

  void host(HostMemory& memory) const;
};

}  // namespace gatherfuzz
