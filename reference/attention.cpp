#include "reference/attention.h"

#include <cmath>
#include <cstddef>

#include "reference/clones.h"
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

// Calls visit(first token of the sequence, head).
template <typename Visit>
void for_each_head(const AttentionShape& shape, Visit visit) {
  for (int sequence = 0; sequence < shape.sequences; ++sequence)
    for (int head = 0; head < shape.heads; ++head) visit(sequence * shape.seq_length, head);
}

// The keys or values of a head side by side, so that a query meets many at once: out[d, u] = rows[u][d].
template <typename Real>
std::vector<Real> side_by_side(const Real* rows, const AttentionShape& shape) {
  std::vector<Real> out(static_cast<std::size_t>(shape.head_dim * shape.seq_length));
  const std::ptrdiff_t stride = 3 * shape.heads * shape.head_dim;
  Real* to = out.data();
  for (int d = 0; d < shape.head_dim; ++d)
    for (int u = 0; u < shape.seq_length; ++u) *to++ = rows[u * stride + d];
  return out;
}

// sums[u] = row . column u of the [head_dim, seq_length] columns, for u < count; sums are zero before.
template <typename Real>
void dot_each(Real* sums, const Real* row, const std::vector<Real>& columns, int count,
              const AttentionShape& shape) {
  for (int d = 0; d < shape.head_dim; ++d)
    add_multiple(sums, row[d], &columns[static_cast<std::size_t>(d * shape.seq_length)], count);
}

}  // namespace

template <typename Real>
GATHERFUZZ_REFERENCE_CLONES Attention<Real> attention(const AttentionShape& shape,
                                                      const std::vector<Real>& qkv) {
  const Real scale = attention_scale<Real>(shape);
  const std::size_t rows = qkv.size() / static_cast<std::size_t>(3 * shape.head_dim);  // T * heads
  Attention<Real> out{std::vector<Real>(qkv.size() / 3), std::vector<Real>(rows), std::vector<Real>(rows),
                      std::vector<Real>(rows * static_cast<std::size_t>(shape.seq_length))};
  for_each_head(shape, [&](int first, int head) {
    const std::vector<Real> keys = side_by_side(head_rows(qkv.data(), shape, first, head).k, shape);
    for (int t = 0; t < shape.seq_length; ++t) {
      const std::size_t row = static_cast<std::size_t>((first + t) * shape.heads + head);
      Real* p = &out.p[row * static_cast<std::size_t>(shape.seq_length)];
      dot_each(p, head_rows(qkv.data(), shape, first + t, head).q, keys, t + 1, shape);
      for (int u = 0; u <= t; ++u) p[u] *= scale;
      const auto [max, sum] = softmax(p, t + 1);
      out.max[row] = max;
      out.sum[row] = sum;
      Real* context = &out.context[row * static_cast<std::size_t>(shape.head_dim)];
      for (int u = 0; u <= t; ++u)
        add_multiple(context, p[u], head_rows(qkv.data(), shape, first + u, head).v, shape.head_dim);
    }
  });
  return out;
}

template <typename Real>
GATHERFUZZ_REFERENCE_CLONES std::vector<Real> attention_backward(const AttentionShape& shape,
                                                                 const std::vector<Real>& qkv,
                                                                 const Attention<Real>& forward,
                                                                 const std::vector<Real>& dcontext) {
  const Real scale = attention_scale<Real>(shape);
  const int dim = shape.head_dim;
  std::vector<Real> dqkv(qkv.size());
  for_each_head(shape, [&](int first, int head) {
    const std::vector<Real> values = side_by_side(head_rows(qkv.data(), shape, first, head).v, shape);
    for (int t = 0; t < shape.seq_length; ++t) {
      const std::size_t row = static_cast<std::size_t>((first + t) * shape.heads + head);
      const Real* p = &forward.p[row * static_cast<std::size_t>(shape.seq_length)];
      const Real* dout = &dcontext[row * static_cast<std::size_t>(dim)];
      std::vector<Real> dp(static_cast<std::size_t>(t + 1));
      dot_each(dp.data(), dout, values, t + 1, shape);
      const Real w = dot(p, dp.data(), t + 1);
      const Real* q = head_rows(qkv.data(), shape, first + t, head).q;
      Real* dq = head_rows(dqkv.data(), shape, first + t, head).q;
      for (int u = 0; u <= t; ++u) {
        const Real ds = (p[u] * (dp[static_cast<std::size_t>(u)] - w)) * scale;
        const auto dkey = head_rows(dqkv.data(), shape, first + u, head);
        add_multiple(dq, ds, head_rows(qkv.data(), shape, first + u, head).k, dim);
        add_multiple(dkey.k, ds, q, dim);
        add_multiple(dkey.v, p[u], dout, dim);
      }
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
