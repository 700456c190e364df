#include "reference/attention.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "reference/rows.h"

namespace gatherfuzz::reference {
namespace {

// The query, key and value rows of one head at one token.
template <typename Real>
struct HeadRows {
  Real *q, *k, *v;
};

template <typename Real>
HeadRows<Real> head_rows(Real* qkv, const AttentionShape& shape, int token, int head) {
  const int hidden = shape.heads * shape.head_dim;
  Real* row = qkv + static_cast<std::ptrdiff_t>(token) * 3 * hidden + head * shape.head_dim;
  return {row, row + hidden, row + 2 * hidden};
}

template <typename Real>
Real attention_scale(const AttentionShape& shape) {
  return Real(1) / std::sqrt(static_cast<Real>(shape.head_dim));
}

// Calls visit(first token of the sequence, query token, head) with queries ascending within a head.
template <typename Visit>
void for_each_query(const AttentionShape& shape, Visit visit) {
  for (int sequence = 0; sequence < shape.sequences; ++sequence) {
    const int first = sequence * shape.seq_length;
    for (int head = 0; head < shape.heads; ++head) {
      for (int t = first; t < first + shape.seq_length; ++t) visit(first, t, head);
    }
  }
}

}  // namespace

template <typename Real>
Attention<Real> attention(const AttentionShape& shape, const std::vector<Real>& qkv) {
  const Real scale = attention_scale<Real>(shape);
  const std::size_t rows = qkv.size() / static_cast<std::size_t>(3 * shape.head_dim);  // T * heads
  Attention<Real> out{std::vector<Real>(qkv.size() / 3), std::vector<Real>(rows), std::vector<Real>(rows)};
  std::vector<Real> weights(static_cast<std::size_t>(shape.seq_length));
  for_each_query(shape, [&](int first, int t, int head) {
    const std::size_t row = static_cast<std::size_t>(t * shape.heads + head);
    const Real* q = head_rows(qkv.data(), shape, t, head).q;
    const std::span<Real> scores(weights.data(), static_cast<std::size_t>(t - first + 1));
    for (int u = first; u <= t; ++u) {
      const Real* k = head_rows(qkv.data(), shape, u, head).k;
      scores[static_cast<std::size_t>(u - first)] = dot(q, k, shape.head_dim) * scale;
    }
    const Real max = *std::max_element(scores.begin(), scores.end());
    Real sum = 0;
    for (Real& score : scores) {
      score = std::exp(score - max);
      sum += score;
    }
    Real* context = &out.context[row * static_cast<std::size_t>(shape.head_dim)];
    for (int u = first; u <= t; ++u) {
      const Real p = scores[static_cast<std::size_t>(u - first)] / sum;
      add_multiple(context, p, head_rows(qkv.data(), shape, u, head).v, shape.head_dim);
    }
    out.max[row] = max;
    out.sum[row] = sum;
  });
  return out;
}

template <typename Real>
std::vector<Real> attention_backward(const AttentionShape& shape, const std::vector<Real>& qkv,
                                     const Attention<Real>& forward, const std::vector<Real>& dcontext) {
  const Real scale = attention_scale<Real>(shape);
  const int dim = shape.head_dim;
  std::vector<Real> dqkv(qkv.size());
  std::vector<Real> p(static_cast<std::size_t>(shape.seq_length));
  std::vector<Real> dp(static_cast<std::size_t>(shape.seq_length));
  for_each_query(shape, [&](int first, int t, int head) {
    const std::size_t row = static_cast<std::size_t>(t * shape.heads + head);
    const Real* q = head_rows(qkv.data(), shape, t, head).q;
    const Real* dout = &dcontext[row * static_cast<std::size_t>(dim)];
    Real w = 0;
    for (int u = first; u <= t; ++u) {
      const auto key = head_rows(qkv.data(), shape, u, head);
      const std::size_t i = static_cast<std::size_t>(u - first);
      p[i] = std::exp(dot(q, key.k, dim) * scale - forward.max[row]) / forward.sum[row];
      dp[i] = dot(dout, key.v, dim);
      w += p[i] * dp[i];
    }
    Real* dq = head_rows(dqkv.data(), shape, t, head).q;
    for (int u = first; u <= t; ++u) {
      const std::size_t i = static_cast<std::size_t>(u - first);
      const Real ds = (p[i] * (dp[i] - w)) * scale;
      const auto dkey = head_rows(dqkv.data(), shape, u, head);
      add_multiple(dq, ds, head_rows(qkv.data(), shape, u, head).k, dim);
      add_multiple(dkey.k, ds, q, dim);
      add_multiple(dkey.v, p[i], dout, dim);
    }
  });
  return dqkv;
}

template Attention<float> attention(const AttentionShape&, const std::vector<float>&);
template Attention<double> attention(const AttentionShape&, const std::vector<double>&);
template std::vector<float> attention_backward(const AttentionShape&, const std::vector<float>&,
                                               const Attention<float>&, const std::vector<float>&);
template std::vector<double> attention_backward(const AttentionShape&, const std::vector<double>&,
                                                const Attention<double>&, const std::vector<double>&);

}  // namespace gatherfuzz::reference
