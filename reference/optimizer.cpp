#include "reference/optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/clones.h"
#include "reference/formats.h"

namespace gatherfuzz::reference {

float round_gradient(GradPrecision precision, float value) {
  return precision == GradPrecision::bf16 ? round_to_bf16(value) : value;
}

GATHERFUZZ_REFERENCE_CLONES void accumulate(GradPrecision precision, std::span<float> main_grad,
                                            std::span<const float> gradient) {
  for (std::size_t i = 0; i < main_grad.size(); ++i) {
    main_grad[i] = round_gradient(precision, main_grad[i] + gradient[i]);
  }
}

namespace {

GATHERFUZZ_REFERENCE_CLONES void scale(GradPrecision precision, std::span<float> gradient, float factor) {
  for (float& value : gradient) value = round_gradient(precision, value * factor);
}

}  // namespace

void scale_before_sum(GradPrecision precision, std::span<float> gradient, int data_parallel_size) {
  scale(precision, gradient, 1.0f / static_cast<float>(data_parallel_size));
}

void divide_by_tokens(GradPrecision precision, std::span<float> gradient, int tokens) {
  scale(precision, gradient, 1.0f / static_cast<float>(tokens));
}

GATHERFUZZ_REFERENCE_CLONES std::vector<float> reduce(GradPrecision precision,
                                                      const std::vector<std::vector<float>>& by_rank,
                                                      bool average_in_collective) {
  const float factor = average_in_collective ? 1.0f / static_cast<float>(by_rank.size()) : 1.0f;
  std::vector<float> sum = by_rank.front();
  for (float& value : sum) value *= factor;
  for (std::size_t rank = 1; rank < by_rank.size(); ++rank) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += by_rank[rank][i] * factor;
  }
  for (float& value : sum) value = round_gradient(precision, value);
  return sum;
}

void unscale(std::span<float> gradient, std::optional<float> loss_scale) {
  if (!loss_scale) return;
  const float factor = 1.0f / *loss_scale;
  for (float& value : gradient) value *= factor;
}

bool all_finite(std::span<const float> gradient) {
  return std::all_of(gradient.begin(), gradient.end(), [](float value) { return std::isfinite(value); });
}

GlobalNorm global_norm(const std::vector<std::vector<float>>& gradients) {
  long double sum = 0;
  long double count = 0;
  for (const std::vector<float>& gradient : gradients) {
    for (const float value : gradient)
      sum += static_cast<long double>(value) * static_cast<long double>(value);
    count += static_cast<long double>(gradient.size());
  }
  const long double error = sum * count * std::numeric_limits<long double>::epsilon();
  const auto root = [](long double squares) {
    return static_cast<float>(std::sqrt(static_cast<double>(squares)));
  };
  return {root(sum), root(sum - error), root(sum + error)};
}

float clip_coefficient(float norm, float clip_grad) {
  if (!(clip_grad > 0.0f)) return 1.0f;
  return std::min(1.0f, clip_grad / (norm + 1e-6f));
}

AdamSettings settings_for(const ParamShape& param, AdamSettings settings) {
  if (param.rows == 1) settings.weight_decay = 0.0f;
  return settings;
}

GATHERFUZZ_REFERENCE_CLONES void adam(const AdamSettings& settings, const AdamState& state,
                                      std::span<const float> gradient, float coefficient, float lr,
                                      int step) {
  const float beta1 = static_cast<float>(settings.beta1);
  const float beta2 = static_cast<float>(settings.beta2);
  const float rest1 = static_cast<float>(1.0 - settings.beta1);
  const float rest2 = static_cast<float>(1.0 - settings.beta2);
  const float correction1 = static_cast<float>(1.0 - std::pow(settings.beta1, step));
  const float correction2 = static_cast<float>(1.0 - std::pow(settings.beta2, step));
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const float g = gradient[i] * coefficient;
    const float m = beta1 * state.moment1[i] + rest1 * g;
    const float v = beta2 * state.moment2[i] + (rest2 * g) * g;
    state.moment1[i] = m;
    state.moment2[i] = v;
    float direction = (m / correction1) / (std::sqrt(v / correction2) + settings.epsilon);
    if (settings.weight_decay > 0.0f) direction += settings.weight_decay * state.main[i];
    state.main[i] = state.main[i] - lr * direction;
  }
}

}  // namespace gatherfuzz::reference
