#include "reference/ops.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "reference/rows.h"

namespace gatherfuzz::reference {
namespace {

template <typename Real>
Real sigmoid(Real x) {
  return Real(1) / (Real(1) + std::exp(-x));
}

}  // namespace

template <typename Real>
std::vector<Real> product(const std::vector<Real>& left, const std::vector<Real>& right, int rows, int inner,
                          int cols) {
  // The innermost loop runs over outputs: each one's sum ascends in k, and several are computed at once.
  constexpr int kTile = 32;
  std::vector<Real> out(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols));
  for (int row = 0; row < rows; ++row) {
    const Real* left_row = left.data() + static_cast<std::ptrdiff_t>(row) * inner;
    for (int begin = 0; begin < cols; begin += kTile) {
      const int width = std::min(kTile, cols - begin);
      const Real* right_tile = right.data() + begin;
      Real sum[kTile] = {};
      if (width == kTile) {
        for (int k = 0; k < inner; ++k) add_multiple(sum, left_row[k], right_tile + k * cols, kTile);
      } else {
        for (int k = 0; k < inner; ++k) add_multiple(sum, left_row[k], right_tile + k * cols, width);
      }
      std::copy_n(sum, width, out.data() + static_cast<std::ptrdiff_t>(row) * cols + begin);
    }
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
std::vector<Real> swiglu(const std::vector<Real>& in, int ffn) {
  std::vector<Real> out(in.size() / 2);
  const std::size_t width = static_cast<std::size_t>(ffn);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Real* gate = &in[i / width * 2 * width + i % width];
    const Real up = gate[width];
    out[i] = (*gate * sigmoid(*gate)) * up;
  }
  return out;
}

template <typename Real>
std::vector<Real> swiglu_backward(const std::vector<Real>& dout, const std::vector<Real>& in, int ffn) {
  std::vector<Real> din(in.size());
  const std::size_t width = static_cast<std::size_t>(ffn);
  for (std::size_t i = 0; i < dout.size(); ++i) {
    const std::size_t at = i / width * 2 * width + i % width;
    const Real gate = in[at];
    const Real up = in[at + width];
    const Real sig = sigmoid(gate);
    din[at] = (dout[i] * up) * (sig * (Real(1) + gate * (Real(1) - sig)));
    din[at + width] = dout[i] * (gate * sig);
  }
  return din;
}

template <typename Real>
CrossEntropy<Real> cross_entropy(const std::vector<Real>& logits, std::span<const std::int32_t> targets,
                                 int vocab) {
  CrossEntropy<Real> out{0, std::vector<Real>(targets.size()), std::vector<Real>(targets.size())};
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const std::span<const Real> row(&logits[t * static_cast<std::size_t>(vocab)],
                                    static_cast<std::size_t>(vocab));
    const Real max = *std::max_element(row.begin(), row.end());
    Real sum = 0;
    for (const Real logit : row) sum += std::exp(logit - max);
    out.loss += (std::log(sum) + max) - row[static_cast<std::size_t>(targets[t])];
    out.max[t] = max;
    out.sum[t] = sum;
  }
  out.loss /= static_cast<Real>(targets.size());
  return out;
}

template <typename Real>
std::vector<Real> cross_entropy_backward(const std::vector<Real>& logits,
                                         std::span<const std::int32_t> targets, int vocab,
                                         const CrossEntropy<Real>& forward, Real coefficient) {
  const Real factor = coefficient / static_cast<Real>(targets.size());
  std::vector<Real> dlogits(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const std::size_t t = i / static_cast<std::size_t>(vocab);
    const bool is_target = i % static_cast<std::size_t>(vocab) == static_cast<std::size_t>(targets[t]);
    const Real p = std::exp(logits[i] - forward.max[t]) / forward.sum[t];
    dlogits[i] = (p - (is_target ? Real(1) : Real(0))) * factor;
  }
  return dlogits;
}

#define GATHERFUZZ_INSTANTIATE(Real)                                                                         \
  template std::vector<Real> product(const std::vector<Real>&, const std::vector<Real>&, int, int, int);     \
  template std::vector<Real> transpose(const std::vector<Real>&, int, int);                                  \
  template std::vector<Real> embedding(const std::vector<Real>&, std::span<const std::int32_t>, int);        \
  template std::vector<Real> embedding_backward(const std::vector<Real>&, std::span<const std::int32_t>,     \
                                                int, int);                                                   \
  template RmsNorm<Real> rms_norm(const std::vector<Real>&, const std::vector<Real>&);                       \
  template RmsNormGradients<Real> rms_norm_backward(const std::vector<Real>&, const std::vector<Real>&,      \
                                                    const std::vector<Real>&, const std::vector<Real>&);     \
  template std::vector<Real> swiglu(const std::vector<Real>&, int);                                          \
  template std::vector<Real> swiglu_backward(const std::vector<Real>&, const std::vector<Real>&, int);       \
  template CrossEntropy<Real> cross_entropy(const std::vector<Real>&, std::span<const std::int32_t>, int);   \
  template std::vector<Real> cross_entropy_backward(const std::vector<Real>&, std::span<const std::int32_t>, \
                                                    int, const CrossEntropy<Real>&, Real);
GATHERFUZZ_INSTANTIATE(float)
GATHERFUZZ_INSTANTIATE(double)
#undef GATHERFUZZ_INSTANTIATE

}  // namespace gatherfuzz::reference
