#include "impl/kernels/attention.h"

#include <cmath>

#include "impl/kernels/gemm.h"

namespace gatherfuzz {

namespace {

constexpr int kBand = 4;  // rows that `gemm` computes together

// Shapes and strides of one head of one sequence; offsets and strides count elements.
struct Head {
  int length = 0;  // of the sequence
  int dim = 0;
  int hidden = 0;
  int heads = 0;
  int first_token = 0;
  int head = 0;
  float scale = 0.0f;

  std::ptrdiff_t query() const { return static_cast<std::ptrdiff_t>(first_token) * 3 * hidden + head * dim; }
  std::ptrdiff_t key() const { return query() + hidden; }
  std::ptrdiff_t value() const { return query() + 2 * hidden; }
  std::ptrdiff_t context() const { return static_cast<std::ptrdiff_t>(first_token) * hidden + head * dim; }
  int statistic(int t) const { return (first_token + t) * heads + head; }
};

template <class F>
void for_each_head(uint32_t tokens, int32_t seq_length, int32_t heads, uint32_t qkv_count, F&& f) {
  Head at;
  at.length = seq_length;
  at.hidden = static_cast<int>(qkv_count / tokens) / 3;
  at.heads = heads;
  at.dim = at.hidden / heads;
  at.scale = 1.0f / std::sqrt(static_cast<float>(at.dim));
  for (at.first_token = 0; at.first_token < static_cast<int>(tokens); at.first_token += seq_length)
    for (at.head = 0; at.head < heads; ++at.head) f(at);
}

// out[t, u] = sum over d of rows[t, d] * columns[u, d] for all t and u of the sequence.
void dot_all(const Head& at, Strided rows, const float* columns, std::ptrdiff_t stride, float* transposed,
             float* out) {
  transpose(columns, stride, at.length, at.dim, transposed);
  multiply({rows, transposed, at.length, out, at.length, at.length, at.length, at.dim});
}

// c[t] = sum over u <= t of weights[t, u] * rows[u]. Terms past the diagonal are left out, not multiplied by
// zero.
void sum_over_keys(const Head& at, const float* weights, const float* rows, std::ptrdiff_t stride, float* c,
                   std::ptrdiff_t c_stride) {
  for (int t = 0; t < at.length; t += kBand) {
    const int band = at.length - t < kBand ? at.length - t : kBand;
    multiply(
        {{weights + t * at.length, at.length, 1}, rows, stride, c + t * c_stride, c_stride, band, at.dim, t});
    for (int r = t; r < t + band; ++r)
      multiply_onto({{weights + r * at.length + t, at.length, 1},
                     rows + t * stride,
                     stride,
                     c + r * c_stride,
                     c_stride,
                     1,
                     at.dim,
                     r - t + 1});
  }
}

// c[u] = sum over t >= u of weights[t, u] * rows[t]
void sum_over_queries(const Head& at, const float* weights, const float* rows, std::ptrdiff_t stride,
                      float* c, std::ptrdiff_t c_stride) {
  for (int u = 0; u < at.length; u += kBand) {
    const int band = at.length - u < kBand ? at.length - u : kBand;
    const int after = u + band;
    for (int r = u; r < after; ++r)
      multiply({{weights + r * at.length + r, 1, at.length},
                rows + r * stride,
                stride,
                c + r * c_stride,
                c_stride,
                1,
                at.dim,
                after - r});
    multiply_onto({{weights + after * at.length + u, 1, at.length},
                   rows + after * stride,
                   stride,
                   c + u * c_stride,
                   c_stride,
                   band,
                   at.dim,
                   at.length - after});
  }
}

}  // namespace

void Attention::host(HostMemory& memory) const {
  const float* in = memory.load(qkv);
  float* out = memory.staging(context);
  float* max = memory.out<float>(row_max);
  float* sum = memory.out<float>(row_sum);
  const auto square = static_cast<std::size_t>(seq_length) * static_cast<std::size_t>(seq_length);
  const uint32_t tokens = row_max.count() / static_cast<uint32_t>(heads);
  float* weights = memory.scratch(square);
  float* transposed = memory.scratch(qkv.count());
  for_each_head(tokens, seq_length, heads, qkv.count(), [&](const Head& at) {
    const std::ptrdiff_t stride = 3 * at.hidden;
    dot_all(at, {in + at.query(), stride, 1}, in + at.key(), stride, transposed, weights);
    for (int t = 0; t < at.length; ++t) {
      float* row = weights + t * at.length;
      for (int u = 0; u <= t; ++u) row[u] = row[u] * at.scale;
      float m = row[0];
      for (int u = 1; u <= t; ++u) m = m < row[u] ? row[u] : m;
      float z = 0.0f;
      for (int u = 0; u <= t; ++u) z += row[u] = std::exp(row[u] - m);
      for (int u = 0; u <= t; ++u) row[u] = row[u] / z;
      max[at.statistic(t)] = m;
      sum[at.statistic(t)] = z;
    }
    sum_over_keys(at, weights, in + at.value(), stride, out + at.context(), at.hidden);
  });
  memory.store(context, out);
}

void AttentionBackward::host(HostMemory& memory) const {
  const float* in = memory.load(qkv);
  const float* upstream = memory.load(dcontext);
  float* out = memory.staging(dqkv);
  const float* max = memory.in<float>(row_max);
  const float* sum = memory.in<float>(row_sum);
  const auto square = static_cast<std::size_t>(seq_length) * static_cast<std::size_t>(seq_length);
  const uint32_t tokens = row_max.count() / static_cast<uint32_t>(heads);
  float* p = memory.scratch(square);
  float* ds = memory.scratch(square);
  float* transposed = memory.scratch(qkv.count());
  for_each_head(tokens, seq_length, heads, qkv.count(), [&](const Head& at) {
    const std::ptrdiff_t stride = 3 * at.hidden;
    dot_all(at, {in + at.query(), stride, 1}, in + at.key(), stride, transposed, p);
    dot_all(at, {upstream + at.context(), at.hidden, 1}, in + at.value(), stride, transposed, ds);
    for (int t = 0; t < at.length; ++t) {
      float* weight = p + t * at.length;
      float* dp = ds + t * at.length;
      const float m = max[at.statistic(t)];
      const float z = sum[at.statistic(t)];
      for (int u = 0; u <= t; ++u) weight[u] = std::exp(weight[u] * at.scale - m);
      for (int u = 0; u <= t; ++u) weight[u] = weight[u] / z;
      float w = 0.0f;
      for (int u = 0; u <= t; ++u) w += weight[u] * dp[u];
      for (int u = 0; u <= t; ++u) dp[u] = (weight[u] * (dp[u] - w)) * at.scale;
    }
    sum_over_keys(at, ds, in + at.key(), stride, out + at.query(), stride);
    sum_over_queries(at, ds, in + at.query(), stride, out + at.key(), stride);
    sum_over_queries(at, p, upstream + at.context(), at.hidden, out + at.value(), stride);
  });
  memory.store(dqkv, out);
}

}  // namespace gatherfuzz
