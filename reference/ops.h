// The model's formulas, forward and backward, one function each, on plain row-major vectors. attention.h has
// the rest.
//
// Real is float for the oracle, in the order of operations given here, sums in ascending index from zero; and
// double for the same formulas computed wide (finite differences, honest differences). No function rounds to
// an activation format: the model does, where its recipe says so. T tokens, H hidden, F ffn, V vocabulary.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/clones.h"
#include "reference/rows.h"

namespace gatherfuzz::reference {

// out[r, c] = sum over k of left[r, k] * right[k, c]
template <typename Real>
GATHERFUZZ_REFERENCE_CLONES std::vector<Real> product(const std::vector<Real>& left,
                                                      const std::vector<Real>& right, int rows, int inner,
                                                      int cols) {
  // The innermost loop runs over outputs: each one's sum ascends in k, and those of a tile stay in registers.
  constexpr int kTile = 32;
  std::vector<Real> out(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols));
  const Real* left_row = left.data();
  Real* out_row = out.data();
  for (int row = 0; row < rows; ++row, left_row += inner, out_row += cols) {
    int col = 0;
    for (; col + kTile <= cols; col += kTile) {
      Real sum[kTile];
#pragma GCC unroll 32
      for (int i = 0; i < kTile; ++i) sum[i] = 0;
      for (int k = 0; k < inner; ++k) {
        const Real factor = left_row[k];
        const Real* right_row = right.data() + k * cols + col;
#pragma GCC unroll 32
        for (int i = 0; i < kTile; ++i) sum[i] += factor * right_row[i];
      }
      std::copy_n(sum, kTile, out_row + col);
    }
    for (int k = 0; k < inner; ++k)
      add_multiple(out_row + col, left_row[k], right.data() + k * cols + col, cols - col);
  }
  return out;
}

template <typename Real>
std::vector<Real> transpose(const std::vector<Real>& matrix, int rows, int cols) {
  std::vector<Real> out(matrix.size());
  const Real* from = matrix.data();
  for (int row = 0; row < rows; ++row) {
    for (int col = 0; col < cols; ++col) out[static_cast<std::size_t>(col * rows + row)] = *from++;
  }
  return out;
}

// out[t] = table[tokens[t]]
template <typename Real>
std::vector<Real> embedding(const std::vector<Real>& table, std::span<const std::int32_t> tokens,
                            int hidden) {
  std::vector<Real> out;
  out.reserve(tokens.size() * static_cast<std::size_t>(hidden));
  for (const std::int32_t token : tokens) {
    const auto row = table.begin() + static_cast<std::ptrdiff_t>(token) * hidden;
    out.insert(out.end(), row, row + hidden);
  }
  return out;
}

// Adds each token's dx to its row of a zero table, t ascending.
template <typename Real>
std::vector<Real> embedding_backward(const std::vector<Real>& dx, std::span<const std::int32_t> tokens,
                                     int vocab, int hidden) {
  std::vector<Real> table(static_cast<std::size_t>(vocab) * static_cast<std::size_t>(hidden));
  const Real* row = dx.data();
  for (const std::int32_t token : tokens) {
    add_multiple(table.data() + static_cast<std::ptrdiff_t>(token) * hidden, Real(1), row, hidden);
    row += hidden;
  }
  return table;
}

// y = (x * r) * gain with r = 1 / sqrt(mean of x^2 + 1e-5), one r a token.
template <typename Real>
struct RmsNorm {
  std::vector<Real> y;            // [T, H]
  std::vector<Real> inverse_rms;  // [T]
};
template <typename Real>
RmsNorm<Real> rms_norm(const std::vector<Real>& x, const std::vector<Real>& gain) {
  const std::size_t hidden = gain.size();
  const std::size_t tokens = x.size() / hidden;
  RmsNorm<Real> out{std::vector<Real>(x.size()), std::vector<Real>(tokens)};
  for (std::size_t t = 0; t < tokens; ++t) {
    const Real* row = &x[t * hidden];
    const Real squares = dot(row, row, static_cast<int>(hidden));
    const Real r = Real(1) / std::sqrt(squares / static_cast<Real>(hidden) + Real(1e-5f));
    for (std::size_t h = 0; h < hidden; ++h) out.y[t * hidden + h] = (row[h] * r) * gain[h];
    out.inverse_rms[t] = r;
  }
  return out;
}

// With a = dy * gain and q = sum a * x: dx = r * a - ((x * ((r * r) * r)) * q) / H; dgain = sum_t dy * (x *
// r).
template <typename Real>
struct RmsNormGradients {
  std::vector<Real> dx;     // [T, H]
  std::vector<Real> dgain;  // [H]
};
template <typename Real>
RmsNormGradients<Real> rms_norm_backward(const std::vector<Real>& dy, const std::vector<Real>& x,
                                         const std::vector<Real>& gain,
                                         const std::vector<Real>& inverse_rms) {
  const std::size_t hidden = gain.size();
  RmsNormGradients<Real> out{std::vector<Real>(x.size()), std::vector<Real>(hidden)};
  for (std::size_t t = 0; t < inverse_rms.size(); ++t) {
    const Real* dy_row = &dy[t * hidden];
    const Real* x_row = &x[t * hidden];
    const Real r = inverse_rms[t];
    const Real cube = (r * r) * r;
    Real q = 0;
    for (std::size_t h = 0; h < hidden; ++h) q += (dy_row[h] * gain[h]) * x_row[h];
    for (std::size_t h = 0; h < hidden; ++h) {
      const Real a = dy_row[h] * gain[h];
      out.dx[t * hidden + h] = r * a - ((x_row[h] * cube) * q) / static_cast<Real>(hidden);
      out.dgain[h] += dy_row[h] * (x_row[h] * r);
    }
  }
  return out;
}

template <typename Real>
Real sigmoid(Real x) {
  return Real(1) / (Real(1) + std::exp(-x));
}

// in [T, 2F]: gate then up. out [T, F] = (gate * sigmoid(gate)) * up.
template <typename Real>
std::vector<Real> swiglu(const std::vector<Real>& in, int ffn) {
  std::vector<Real> out(in.size() / 2);
  const Real* gate = in.data();
  for (auto row = out.begin(); row != out.end(); row += ffn, gate += 2 * ffn) {
    const Real* up = gate + ffn;
    for (int f = 0; f < ffn; ++f) row[f] = (gate[f] * sigmoid(gate[f])) * up[f];
  }
  return out;
}

// dgate = (dout * up) * (sig * (1 + gate * (1 - sig))); dup = dout * (gate * sig).
template <typename Real>
std::vector<Real> swiglu_backward(const std::vector<Real>& dout, const std::vector<Real>& in, int ffn) {
  std::vector<Real> din(in.size());
  const Real* gate = in.data();
  Real* dgate = din.data();
  for (auto row = dout.begin(); row != dout.end(); row += ffn, gate += 2 * ffn, dgate += 2 * ffn) {
    const Real* up = gate + ffn;
    Real* dup = dgate + ffn;
    for (int f = 0; f < ffn; ++f) {
      const Real sig = sigmoid(gate[f]);
      dgate[f] = (row[f] * up[f]) * (sig * (Real(1) + gate[f] * (Real(1) - sig)));
      dup[f] = row[f] * (gate[f] * sig);
    }
  }
  return din;
}

// sum: per-token loss, which is divided by the number of tokens only after all of it was added.
enum class LossReduction { mean, sum };
// The target of a token that does not count. For LossReduction::sum only.
inline constexpr std::int32_t kMaskedTarget = -1;

// loss = mean over t of (log(sum) + max) - logit[target], or the sum over those that are not masked
template <typename Real>
struct CrossEntropy {
  Real loss = 0;
  int tokens = 0;         // that count
  std::vector<Real> max;  // [T]
  std::vector<Real> sum;  // [T], of exp(logit - max)
  std::vector<Real> p;    // [T, V], exp(logit - max) / sum
};
template <typename Real>
CrossEntropy<Real> cross_entropy(const std::vector<Real>& logits, std::span<const std::int32_t> targets,
                                 int vocab, LossReduction reduction = LossReduction::mean) {
  CrossEntropy<Real> out{0, 0, std::vector<Real>(targets.size()), std::vector<Real>(targets.size()), logits};
  Real* p = out.p.data();
  for (std::size_t t = 0; t < targets.size(); ++t, p += vocab) {
    const bool masked = targets[t] == kMaskedTarget;
    const Real target_logit = masked ? Real(0) : p[targets[t]];
    const auto [max, sum] = softmax(p, vocab);
    out.max[t] = max;
    out.sum[t] = sum;
    if (masked) continue;
    out.loss += (std::log(sum) + max) - target_logit;
    ++out.tokens;
  }
  if (reduction == LossReduction::mean) out.loss /= static_cast<Real>(targets.size());
  return out;
}

// dlogits = (p - onehot) * (coefficient / T); of the sum, without / T, and 0 where a target is masked
template <typename Real>
std::vector<Real> cross_entropy_backward(const CrossEntropy<Real>& forward,
                                         std::span<const std::int32_t> targets, Real coefficient,
                                         LossReduction reduction = LossReduction::mean) {
  std::vector<Real> dlogits = forward.p;
  const std::size_t vocab = dlogits.size() / targets.size();
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (targets[t] == kMaskedTarget) {
      std::fill_n(dlogits.data() + t * vocab, vocab, Real(0));
    } else {
      dlogits[t * vocab + static_cast<std::size_t>(targets[t])] -= Real(1);
    }
  }
  const bool mean = reduction == LossReduction::mean;
  const Real factor = mean ? coefficient / static_cast<Real>(targets.size()) : coefficient;
  for (Real& value : dlogits) value *= factor;
  return dlogits;
}

}  // namespace gatherfuzz::reference
