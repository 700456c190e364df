#include "fuzz/free_run.h"

#include <cmath>

#include "impl/kernels/main_params.h"
#include "impl/numerics/bf16.h"

namespace gatherfuzz {

namespace {

reference::Shape shape_of(const Flags& flags) {
  return {flags.num_layers, flags.hidden_size, flags.ffn_hidden_size, flags.num_attention_heads,
          flags.seq_length, flags.vocab_size,  flags.micro_batch_size};
}

reference::TrainSettings settings_of(const Flags& flags) {
  reference::TrainSettings settings;
  settings.precision = flags.fp8_recipe == Recipe::fp32    ? reference::Precision::fp32
                       : flags.fp8_recipe == Recipe::mxfp8 ? reference::Precision::mxfp8
                                                           : reference::Precision::bf16;
  settings.scale_rounding = flags.mx_scale_rounding == ScaleRounding::up ? reference::ScaleRounding::up
                                                                         : reference::ScaleRounding::floor;
  settings.grad_precision =
      reduces_in_fp32(flags) ? reference::GradPrecision::fp32 : reference::GradPrecision::bf16;
  settings.average_in_collective = flags.average_in_collective;
  if (flags.loss_scale) settings.loss_scale = static_cast<float>(*flags.loss_scale);
  settings.clip_grad = static_cast<float>(flags.clip_grad);
  settings.adam = {flags.adam_beta1, flags.adam_beta2, static_cast<float>(flags.adam_eps)};
  return settings;
}

// The values of the implementation's initialize_main_params.
std::vector<std::vector<float>> initial_params(const Flags& flags) {
  std::vector<std::vector<float>> params;
  for (const reference::ParamShape& shape : reference::param_shapes(shape_of(flags))) {
    const bool norm = shape.rows == 1;
    const float deviation = norm ? 0.0f : 1.0f / std::sqrt(static_cast<float>(shape.cols));
    const auto param = static_cast<uint32_t>(params.size());
    std::vector<float>& values = params.emplace_back(static_cast<std::size_t>(shape.size()));
    for (uint32_t i = 0; i < values.size(); ++i)
      values[i] = to_float(to_bf16(initial_value(flags.seed, param, i, deviation, norm ? 1.0f : 0.0f)));
  }
  return params;
}

}  // namespace

FreeRun::FreeRun(const Flags& flags, const Dataset& dataset)
    : flags_(flags),
      dataset_(dataset),
      trainer_(shape_of(flags), settings_of(flags), initial_params(flags)) {}

float FreeRun::step() {
  const std::size_t seq = static_cast<std::size_t>(flags_.seq_length);
  const std::size_t tokens = seq * static_cast<std::size_t>(flags_.micro_batch_size);
  std::vector<std::vector<reference::Batch>> batches(static_cast<std::size_t>(flags_.data_parallel_size));
  for (int rank = 0; rank < flags_.data_parallel_size; ++rank) {
    for (int microbatch = 0; microbatch < flags_.num_microbatches; ++microbatch) {
      reference::Batch batch{std::vector<int32_t>(tokens), std::vector<int32_t>(tokens)};
      for (int row = 0; row < flags_.micro_batch_size; ++row) {
        const std::size_t first = static_cast<std::size_t>(row) * seq;
        dataset_.sample(rank, microbatch, batch_, row, flags_.seq_length, &batch.tokens[first],
                        &batch.targets[first]);
      }
      batches[static_cast<std::size_t>(rank)].push_back(std::move(batch));
    }
  }
  ++batch_;
  return trainer_.step(batches, static_cast<float>(flags_.lr)).loss;
}

}  // namespace gatherfuzz
