// The model's formulas, forward and backward, one function each, on plain row-major vectors. attention.h has
// the rest.
//
// Real is float for the oracle, in the order of operations given here, sums in ascending index from zero; and
// double for the same formulas computed wide (finite differences, honest differences). No function rounds to
// an activation format: the model does, where its recipe says so. T tokens, H hidden, F ffn, V vocabulary.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gatherfuzz::reference {

// out[r, c] = sum over k of left[r, k] * right[k, c]
template <typename Real>
std::vector<Real> product(const std::vector<Real>& left, const std::vector<Real>& right, int rows, int inner,
                          int cols);
// out[r, c] = sum over k of left[k, r] * right[k, c]
template <typename Real>
std::vector<Real> product_of_transpose(const std::vector<Real>& left, const std::vector<Real>& right,
                                       int rows, int inner, int cols);

template <typename Real>
std::vector<Real> transpose(const std::vector<Real>& matrix, int rows, int cols);

// out[t] = table[tokens[t]]; backward adds each token's dx to its row of a zero table, t ascending.
template <typename Real>
std::vector<Real> embedding(const std::vector<Real>& table, std::span<const std::int32_t> tokens, int hidden);
template <typename Real>
std::vector<Real> embedding_backward(const std::vector<Real>& dx, std::span<const std::int32_t> tokens,
                                     int vocab, int hidden);

// y = (x * r) * gain with r = 1 / sqrt(mean of x^2 + 1e-5), one r a token.
template <typename Real>
struct RmsNorm {
  std::vector<Real> y;            // [T, H]
  std::vector<Real> inverse_rms;  // [T]
};
template <typename Real>
RmsNorm<Real> rms_norm(const std::vector<Real>& x, const std::vector<Real>& gain);

// With a = dy * gain and q = sum a * x: dx = r * a - ((x * ((r * r) * r)) * q) / H; dgain = sum_t dy * (x *
// r).
template <typename Real>
struct RmsNormGradients {
  std::vector<Real> dx;     // [T, H]
  std::vector<Real> dgain;  // [H]
};
template <typename Real>
RmsNormGradients<Real> rms_norm_backward(const std::vector<Real>& dy, const std::vector<Real>& x,
                                         const std::vector<Real>& gain, const std::vector<Real>& inverse_rms);

// in [T, 2F]: gate then up. out [T, F] = (gate * sigmoid(gate)) * up.
template <typename Real>
std::vector<Real> swiglu(const std::vector<Real>& in, int ffn);
// dgate = (dout * up) * (sig * (1 + gate * (1 - sig))); dup = dout * (gate * sig).
template <typename Real>
std::vector<Real> swiglu_backward(const std::vector<Real>& dout, const std::vector<Real>& in, int ffn);

// loss = mean over t of (log(sum) + max) - logit[target]
template <typename Real>
struct CrossEntropy {
  Real loss = 0;
  std::vector<Real> max;  // [T]
  std::vector<Real> sum;  // [T], of exp(logit - max)
  std::vector<Real> p;    // [T, V], exp(logit - max) / sum
};
template <typename Real>
CrossEntropy<Real> cross_entropy(const std::vector<Real>& logits, std::span<const std::int32_t> targets,
                                 int vocab);
// dlogits = (p - onehot) * (coefficient / T)
template <typename Real>
std::vector<Real> cross_entropy_backward(const CrossEntropy<Real>& forward,
                                         std::span<const std::int32_t> targets, Real coefficient);

}  // namespace gatherfuzz::reference
