// From local gradients to new main params: scaling, reduction, unscaling, norm, clipping, Adam.
//
// All FP32, in the order given. Where the grad dtype is bf16, values are rounded exactly where stated.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "reference/shape.h"

namespace gatherfuzz::reference {

enum class GradPrecision { fp32, bf16 };

float round_gradient(GradPrecision precision, float value);

// main_grad = round(main_grad + gradient): one microbatch.
void accumulate(GradPrecision precision, std::span<float> main_grad, std::span<const float> gradient);

// gradient = round(gradient * (1 / data_parallel_size)): before the sum, unless it averages itself.
void scale_before_sum(GradPrecision precision, std::span<float> gradient, int data_parallel_size);

// The sum over ranks, ascending from rank 0's value, rounded once. average_in_collective: of the values times
// (1 / ranks).
std::vector<float> reduce(GradPrecision precision, const std::vector<std::vector<float>>& by_rank,
                          bool average_in_collective);

// gradient = round(gradient * (1 / tokens)): per-token loss, after the sum over ranks, tokens being those of
// all ranks.
void divide_by_tokens(GradPrecision precision, std::span<float> gradient, int tokens);

// gradient * (1 / loss_scale), or unchanged without a loss scale.
void unscale(std::span<float> gradient, std::optional<float> loss_scale);
bool all_finite(std::span<const float> gradient);

// The L2 norm over all parameters, padding excluded. The squares are exact in long double (48 bits of 64), so
// the sum of n of them is within n * epsilon of exact; lower and upper are the norms at both ends. They
// nearly always agree, and then value is what an exact sum gives.
struct GlobalNorm {
  float value = 0, lower = 0, upper = 0;
};
GlobalNorm global_norm(const std::vector<std::vector<float>>& gradients);

// min(1, clip_grad / (norm + 1e-6)); 1 when clip_grad is 0.
float clip_coefficient(float norm, float clip_grad);

struct AdamSettings {
  double beta1 = 0.9, beta2 = 0.95;  // rounded to FP32 where they multiply; 1 - beta is rounded from these
  float epsilon = 1e-8f;
  float weight_decay = 0.0f;
};
// The settings for one parameter: norm weights are not decayed.
AdamSettings settings_for(const ParamShape& param, AdamSettings settings);
struct AdamState {
  std::span<float> main, moment1, moment2;
};
// Decoupled weight decay: the step moves main by -lr * (Adam's direction + weight_decay * main), with main as
// it was. step counts from 1. Every operation is a correctly rounded FP32 one, so the bits are defined.
void adam(const AdamSettings& settings, const AdamState& state, std::span<const float> gradient,
          float coefficient, float lr, int step);

}  // namespace gatherfuzz::reference
