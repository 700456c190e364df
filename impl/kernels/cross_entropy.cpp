#include "impl/kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "impl/kernels/dataset.h"

namespace gatherfuzz {

namespace {

float largest(const float* row, uint32_t n) {
  float max = row[0];
  for (uint32_t i = 1; i < n; ++i) max = max < row[i] ? row[i] : max;
  return max;
}

}  // namespace

void CrossEntropy::host(HostMemory& memory) const {
  const uint32_t tokens = targets.count();
  const uint32_t vocab = logits.count() / tokens;
  const float* row = memory.load(logits);
  const int32_t* target = memory.in<int32_t>(targets);
  float* max = memory.out<float>(row_max);
  float* sum = memory.out<float>(row_sum);
  float total = 0.0f;
  for (uint32_t t = 0; t < tokens; ++t, row += vocab) {
    const float m = largest(row, vocab);
    float z = 0.0f;
    for (uint32_t v = 0; v < vocab; ++v) z += std::exp(row[v] - m);
    max[t] = m;
    sum[t] = z;
    if (per_token && target[t] == kMaskedTarget) continue;
    const auto wanted = static_cast<uint32_t>(target[t]);
    const float logit = wanted < vocab ? row[wanted] : std::numeric_limits<float>::quiet_NaN();
    total += (std::log(z) + m) - logit;
  }
  *memory.out<float>(loss) = per_token ? total : total / static_cast<float>(tokens);
}

void CrossEntropyBackward::host(HostMemory& memory) const {
  const uint32_t tokens = targets.count();
  const uint32_t vocab = logits.count() / tokens;
  const float factor = per_token ? coefficient.value : coefficient.value / static_cast<float>(tokens);
  const float* row = memory.load(logits);
  const int32_t* target = memory.in<int32_t>(targets);
  const float* max = memory.in<float>(row_max);
  const float* sum = memory.in<float>(row_sum);
  float* out = memory.staging(dlogits);
  float* gradient = out;
  for (uint32_t t = 0; t < tokens; ++t, row += vocab, gradient += vocab) {
    if (per_token && target[t] == kMaskedTarget) {
      std::fill_n(gradient, vocab, 0.0f);
      continue;
    }
    for (uint32_t v = 0; v < vocab; ++v) gradient[v] = std::exp(row[v] - max[t]);
    for (uint32_t v = 0; v < vocab; ++v) gradient[v] = gradient[v] / sum[t];
    const auto wanted = static_cast<uint32_t>(target[t]);
    if (wanted < vocab) gradient[wanted] = gradient[wanted] - 1.0f;
    for (uint32_t v = 0; v < vocab; ++v) gradient[v] = gradient[v] * factor;
  }
  out[0] = out[0] + *memory.in<float>(injection);
  memory.store(dlogits, out);
}

}  // namespace gatherfuzz
