#include "reference/trainer.h"

#include <algorithm>
#include <utility>

namespace gatherfuzz::reference {
namespace {

std::vector<std::vector<float>> zeros_like(const std::vector<std::vector<float>>& values) {
  std::vector<std::vector<float>> zeros;
  for (const auto& value : values) zeros.emplace_back(value.size());
  return zeros;
}

}  // namespace

LossReduction loss_reduction(const TrainSettings& settings) {
  return settings.calculate_per_token_loss ? LossReduction::sum : LossReduction::mean;
}

float gradient_coefficient(const TrainSettings& settings, std::size_t microbatches) {
  const float scale = settings.loss_scale.value_or(1.0f);
  return settings.calculate_per_token_loss ? scale : scale / static_cast<float>(microbatches);
}

Trainer::Trainer(const Shape& shape, const TrainSettings& settings,
                 std::vector<std::vector<float>> main_params)
    : params_(param_shapes(shape)),
      model_(shape, settings.precision, settings.scale_rounding, loss_reduction(settings)),
      settings_(settings),
      main_(std::move(main_params)),
      moment1_(zeros_like(main_)),
      moment2_(zeros_like(main_)) {}

void Trainer::resume(std::vector<std::vector<float>> moment1, std::vector<std::vector<float>> moment2,
                     int steps_taken) {
  moment1_ = std::move(moment1);
  moment2_ = std::move(moment2);
  adam_step_ = steps_taken;
}

StepResult Trainer::step(const std::vector<std::vector<Batch>>& batches, float lr) {
  const Prepared<float> prepared = model_.prepare(weights());
  Total total;
  std::vector<std::vector<std::vector<float>>> by_rank;
  for (const auto& microbatches : batches) by_rank.push_back(local_gradients(prepared, microbatches, total));

  StepResult result;
  const double parts = settings_.calculate_per_token_loss
                           ? static_cast<double>(total.tokens)
                           : static_cast<double>(batches.size() * batches.front().size());
  result.loss = static_cast<float>(total.loss / parts);
  const std::vector<std::vector<float>> gradients = reduced(std::move(by_rank), total.tokens);
  result.grad_norm = global_norm(gradients).value;
  result.skipped = settings_.loss_scale &&
                   !std::all_of(gradients.begin(), gradients.end(),
                                [](const std::vector<float>& gradient) { return all_finite(gradient); });
  const std::optional<float>& most = settings_.grad_norm_skip_threshold;
  if (most && !(result.grad_norm <= *most)) result.skipped = true;
  if (result.skipped) return result;

  ++adam_step_;
  const float coefficient = clip_coefficient(result.grad_norm, settings_.clip_grad);
  for (std::size_t i = 0; i < main_.size(); ++i) {
    adam(settings_for(params_[i], settings_.adam), {main_[i], moment1_[i], moment2_[i]}, gradients[i],
         coefficient, lr, adam_step_);
  }
  return result;
}

std::vector<std::vector<float>> Trainer::weights() const {
  std::vector<std::vector<float>> weights = main_;
  if (settings_.precision == Precision::fp32) return weights;
  for (auto& weight : weights) {
    for (float& value : weight) value = round_to_bf16(value);
  }
  return weights;
}

std::vector<std::vector<float>> Trainer::local_gradients(const Prepared<float>& prepared,
                                                         const std::vector<Batch>& microbatches,
                                                         Total& total) const {
  const float coefficient = gradient_coefficient(settings_, microbatches.size());
  std::vector<std::vector<float>> main_grad = zeros_like(main_);
  for (const Batch& batch : microbatches) {
    const auto local = model_.forward_backward(prepared, batch.tokens, batch.targets, coefficient);
    total.loss += static_cast<double>(local.loss);
    total.tokens += local.tokens;
    for (std::size_t i = 0; i < main_grad.size(); ++i) {
      for (const std::vector<float>* summand : local.summands(i))
        accumulate(settings_.grad_precision, main_grad[i], *summand);
    }
  }
  return main_grad;
}

std::vector<std::vector<float>> Trainer::reduced(std::vector<std::vector<std::vector<float>>> by_rank,
                                                 int tokens) const {
  const int ranks = static_cast<int>(by_rank.size());
  std::vector<std::vector<float>> gradients;
  for (std::size_t i = 0; i < main_.size(); ++i) {
    std::vector<std::vector<float>> parts;
    for (auto& rank : by_rank) {
      const bool scale = !settings_.average_in_collective && !settings_.calculate_per_token_loss;
      if (scale) scale_before_sum(settings_.grad_precision, rank[i], ranks);
      parts.push_back(std::move(rank[i]));
    }
    gradients.push_back(reduce(settings_.grad_precision, parts, settings_.average_in_collective));
    if (settings_.calculate_per_token_loss)
      divide_by_tokens(settings_.grad_precision, gradients.back(), tokens);
    unscale(gradients.back(), settings_.loss_scale);
  }
  return gradients;
}

}  // namespace gatherfuzz::reference
