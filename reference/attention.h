// Causal multi-head attention, forward and backward. Real, roundings and order of sums as in ops.h.
#pragma once

#include <vector>

namespace gatherfuzz::reference {

// qkv is [T, 3H]: q, k, v thirds, heads side by side in each. Per query t, over keys u <= t
// of its sequence: s = (q . k) * scale, p = exp(s - max) / sum, context = sum p * v.
struct AttentionShape {
  int sequences = 0, seq_length = 0, heads = 0, head_dim = 0;
};
template <typename Real>
struct Attention {
  std::vector<Real> context;  // [T, H]
  std::vector<Real> max;      // [T, heads]
  std::vector<Real> sum;      // [T, heads], of exp(s - max)
  std::vector<Real> p;        // [T, heads, seq_length], the keys of the query's sequence; 0 for later ones
};
template <typename Real>
Attention<Real> attention(const AttentionShape& shape, const std::vector<Real>& qkv);
// With dp = dcontext . v and w = sum p * dp: ds = (p * (dp - w)) * scale; dq = sum_u ds * k; dk = sum_t ds *
// q; dv = sum_t p * dcontext. Returns dqkv [T, 3H].
template <typename Real>
std::vector<Real> attention_backward(const AttentionShape& shape, const std::vector<Real>& qkv,
                                     const Attention<Real>& forward, const std::vector<Real>& dcontext);

}  // namespace gatherfuzz::reference
