// Causal multi-head attention, forward and backward. Real, roundings and order of sums as in ops.h.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "reference/clones.h"
#include "reference/ops.h"
#include "reference/rows.h"

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
Real attention_scale(const AttentionShape& shape) {
  return Real(1) / std::sqrt(static_cast<Real>(shape.head_dim));
}

enum Third { kQuery, kKey, kValue };

// The row of one head at one token in qkv.
template <typename Real>
Real* head_row(Real* qkv, const AttentionShape& shape, Third third, int token, int head) {
  return qkv + ((token * 3 + third) * shape.heads + head) * shape.head_dim;
}

// sums[u] += row . (key or value of token first + u), u < count: all at once, from the transpose of qkv.
template <typename Real>
void dot_each(Real* sums, const Real* row, const std::vector<Real>& transposed, const AttentionShape& shape,
              Third third, int head, int first, int count) {
  const int tokens = shape.sequences * shape.seq_length;
  const Real* column = transposed.data() + (third * shape.heads + head) * shape.head_dim * tokens + first;
  for (int d = 0; d < shape.head_dim; ++d, column += tokens) add_multiple(sums, row[d], column, count);
}

template <typename Real>
GATHERFUZZ_REFERENCE_CLONES Attention<Real> attention(const AttentionShape& shape,
                                                      const std::vector<Real>& qkv) {
  const Real scale = attention_scale<Real>(shape);
  const int dim = shape.head_dim;
  const std::size_t rows = qkv.size() / static_cast<std::size_t>(3 * dim);  // T * heads
  Attention<Real> out{std::vector<Real>(qkv.size() / 3), std::vector<Real>(rows), std::vector<Real>(rows),
                      std::vector<Real>(rows * static_cast<std::size_t>(shape.seq_length))};
  const int tokens = shape.sequences * shape.seq_length;
  const std::vector<Real> transposed = transpose(qkv, tokens, 3 * shape.heads * dim);
  for (int first = 0; first < tokens; first += shape.seq_length)
    for (int head = 0; head < shape.heads; ++head)
      for (int t = first; t < first + shape.seq_length; ++t) {
        const int row = t * shape.heads + head;
        const int keys = t - first + 1;
        Real* p = out.p.data() + row * shape.seq_length;
        dot_each(p, head_row(qkv.data(), shape, kQuery, t, head), transposed, shape, kKey, head, first, keys);
        for (int u = 0; u < keys; ++u) p[u] *= scale;
        const auto [max, sum] = softmax(p, keys);
        out.max[static_cast<std::size_t>(row)] = max;
        out.sum[static_cast<std::size_t>(row)] = sum;
        for (int u = 0; u < keys; ++u)
          add_multiple(out.context.data() + row * dim, p[u],
                       head_row(qkv.data(), shape, kValue, first + u, head), dim);
      }
  return out;
}

// With dp = dcontext . v and w = sum p * dp: ds = (p * (dp - w)) * scale; dq = sum_u ds * k; dk = sum_t ds *
// q; dv = sum_t p * dcontext. Returns dqkv [T, 3H].
template <typename Real>
GATHERFUZZ_REFERENCE_CLONES std::vector<Real> attention_backward(const AttentionShape& shape,
                                                                 const std::vector<Real>& qkv,
                                                                 const Attention<Real>& forward,
                                                                 const std::vector<Real>& dcontext) {
  const Real scale = attention_scale<Real>(shape);
  const int dim = shape.head_dim;
  std::vector<Real> dqkv(qkv.size());
  const int tokens = shape.sequences * shape.seq_length;
  const std::vector<Real> transposed = transpose(qkv, tokens, 3 * shape.heads * dim);
  for (int first = 0; first < tokens; first += shape.seq_length)
    for (int head = 0; head < shape.heads; ++head)
      for (int t = first; t < first + shape.seq_length; ++t) {
        const int row = t * shape.heads + head;
        const int keys = t - first + 1;
        const Real* p = forward.p.data() + row * shape.seq_length;
        const Real* dout = dcontext.data() + row * dim;
        std::vector<Real> dp(static_cast<std::size_t>(keys));
        dot_each(dp.data(), dout, transposed, shape, kValue, head, first, keys);
        const Real w = dot(p, dp.data(), keys);
        const Real* q = head_row(qkv.data(), shape, kQuery, t, head);
        Real* dq = head_row(dqkv.data(), shape, kQuery, t, head);
        for (int u = 0; u < keys; ++u) {
          const Real ds = (p[u] * (dp[static_cast<std::size_t>(u)] - w)) * scale;
          add_multiple(dq, ds, head_row(qkv.data(), shape, kKey, first + u, head), dim);
          add_multiple(head_row(dqkv.data(), shape, kKey, first + u, head), ds, q, dim);
          add_multiple(head_row(dqkv.data(), shape, kValue, first + u, head), p[u], dout, dim);
        }
      }
  return dqkv;
}

}  // namespace gatherfuzz::reference
