// Causal self-attention over the heads of one microbatch, and its gradient. qkv is [tokens, 3 * hidden]:
// query, key and value thirds, in each of them the heads side by side, head_dim = hidden / heads. Tokens are
// whole sequences of seq_length. Row maxima and sums [tokens, heads] are kept in FP32 for backward, which
// computes the weights anew.
#pragma once

#include "impl/runtime/op_type.h"

namespace gatherfuzz {

// For query t over the keys u <= t of its sequence, with scale = 1 / sqrt(head_dim): s = (q . k) * scale;
// max = max over u of s; e = exp(s - max); sum = sum over u of e; context = round(sum over u of (e / sum) *
// v).
struct Attention {
  static constexpr const char* kName = "attention";
  Read<real> qkv;
  Write<real> context;  // [tokens, hidden]
  Write<float> row_max;
  Write<float> row_sum;
  int32_t seq_length = 0;
  int32_t heads = 0;

  void host(HostMemory& memory) const;
};

// With p = exp(s - max) / sum, dp = sum over d of dcontext * v, w = sum over u of p * dp, ds = (p * (dp - w))
// * scale: dq = round(sum over u of ds * k); dk = round(sum over t >= u of ds * q); dv = round(sum over t >=
// u of p * dcontext).
struct AttentionBackward {
  static constexpr const char* kName = "attention_backward";
  Read<real> qkv;
  Read<real> dcontext;
  Read<float> row_max;
  Read<float> row_sum;
  Write<real> dqkv;
  int32_t seq_length = 0;
  int32_t heads = 0;

  void host(HostMemory& memory) const;
};

}  // namespace gatherfuzz
