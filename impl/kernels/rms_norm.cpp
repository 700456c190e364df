#include "impl/kernels/rms_norm.h"

#include <algorithm>
#include <cmath>

#include "impl/kernels/accumulate.h"
#include "impl/kernels/row_sums.h"

namespace gatherfuzz {

void RmsNorm::host(HostMemory& memory) const {
  const int tokens = static_cast<int>(inverse_rms.count());
  const int hidden = static_cast<int>(gain.count());
  const float* values = memory.load(x);
  const float* factors = memory.load(gain);
  float* inverse = memory.out<float>(inverse_rms);
  float* out = memory.staging(y);
  row_sums(tokens, hidden, inverse, [values, hidden](int t, int h) {
    const float value = values[t * hidden + h];
    return value * value;
  });
  for (int t = 0; t < tokens; ++t) {
    const float r = 1.0f / std::sqrt(inverse[t] / static_cast<float>(hidden) + 1e-5f);
    inverse[t] = r;
    for (int h = 0; h < hidden; ++h) out[t * hidden + h] = (values[t * hidden + h] * r) * factors[h];
  }
  memory.store(y, out);
}

void RmsNormBackward::host(HostMemory& memory) const {
  const int tokens = static_cast<int>(inverse_rms.count());
  const int hidden = static_cast<int>(gain.count());
  const float width = static_cast<float>(hidden);
  const float* upstream = memory.load(dy);
  const float* values = memory.load(x);
  const float* factors = memory.load(gain);
  const float* inverse = memory.in<float>(inverse_rms);
  float* out = memory.staging(dx);
  float* q = memory.scratch(static_cast<std::size_t>(tokens));
  float* gain_summand = memory.scratch(static_cast<std::size_t>(hidden));
  std::fill_n(gain_summand, hidden, 0.0f);
  row_sums(tokens, hidden, q,
           [=](int t, int h) { return (upstream[t * hidden + h] * factors[h]) * values[t * hidden + h]; });
  for (int t = 0; t < tokens; ++t) {
    const float r = inverse[t];
    const float cube = (r * r) * r;
    const float* up = upstream + t * hidden;
    const float* row = values + t * hidden;
    for (int h = 0; h < hidden; ++h) {
      const float a = up[h] * factors[h];
      out[t * hidden + h] = r * a - ((row[h] * cube) * q[t]) / width;
      gain_summand[h] += up[h] * (row[h] * r);
    }
  }
  memory.store(dx, out);
  accumulate(memory, main_grad, gain_summand);
}

}  // namespace gatherfuzz
