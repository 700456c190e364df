#include "properties/reference_settings.h"

#include "impl/kernels/main_params.h"
#include "impl/training/assembly.h"

namespace gatherfuzz {

namespace {

reference::Precision precision_of(Recipe recipe) {
  switch (recipe) {
    case Recipe::fp32:
      return reference::Precision::fp32;
    case Recipe::bf16:
      return reference::Precision::bf16;
    case Recipe::mxfp8:
      return reference::Precision::mxfp8;
  }
  return reference::Precision::fp32;
}

reference::LrDecayStyle decay_style_of(LrDecayStyle style) {
  switch (style) {
    case LrDecayStyle::constant:
      return reference::LrDecayStyle::constant;
    case LrDecayStyle::linear:
      return reference::LrDecayStyle::linear;
    case LrDecayStyle::cosine:
      return reference::LrDecayStyle::cosine;
  }
  return reference::LrDecayStyle::constant;
}

}  // namespace

reference::Shape reference_shape(const Flags& f) {
  return {f.num_layers,
          f.hidden_size,
          f.ffn_hidden_size,
          f.num_attention_heads,
          f.seq_length,
          f.vocab_size,
          f.micro_batch_size,
          f.first_last_layers_bf16,
          !f.untie_embeddings_and_output_weights};
}

reference::TrainSettings reference_settings(const Flags& f) {
  reference::TrainSettings settings;
  settings.precision = precision_of(f.fp8_recipe);
  settings.scale_rounding = f.mx_scale_rounding == ScaleRounding::up ? reference::ScaleRounding::up
                                                                     : reference::ScaleRounding::floor;
  settings.grad_precision =
      reduces_in_fp32(f) ? reference::GradPrecision::fp32 : reference::GradPrecision::bf16;
  settings.average_in_collective = f.average_in_collective;
  settings.calculate_per_token_loss = f.calculate_per_token_loss;
  if (f.loss_scale) settings.loss_scale = static_cast<float>(*f.loss_scale);
  if (f.grad_norm_skip_threshold)
    settings.grad_norm_skip_threshold = static_cast<float>(*f.grad_norm_skip_threshold);
  settings.clip_grad = static_cast<float>(f.clip_grad);
  settings.adam = {f.adam_beta1, f.adam_beta2, static_cast<float>(f.adam_eps),
                   static_cast<float>(f.weight_decay)};
  return settings;
}

reference::LrSchedule reference_lr_schedule(const Flags& f) {
  return {f.lr, f.lr_warmup_steps, decay_style_of(f.lr_decay_style), f.lr_decay_steps.value_or(0), f.min_lr};
}

std::vector<std::vector<float>> initial_main_params(const Flags& f) {
  std::vector<std::vector<float>> params;
  for (const ParamInfo& info : model_params(model_config(f))) {
    const InitialDistribution initial = initial_distribution(info);
    const auto param = static_cast<uint32_t>(params.size());
    std::vector<float>& values = params.emplace_back(static_cast<std::size_t>(info.rows * info.cols));
    for (uint32_t i = 0; i < values.size(); ++i)
      values[i] =
          reference::round_to_bf16(initial_value(f.seed, param, i, initial.deviation, initial.constant));
  }
  return params;
}

}  // namespace gatherfuzz
