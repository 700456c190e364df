// A whole training step of the reference, free running: data-parallel ranks, microbatches, reduction,
// clipping, Adam, and weights re-derived from main params.
//
// For loss curves beside the implementation's. It bounds nothing: in quantized training one flipped bit
// grows, so numbers are compared one hop at a time (model.h, optimizer.h, bounds.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reference/model.h"
#include "reference/optimizer.h"

namespace gatherfuzz::reference {

struct Batch {
  std::vector<std::int32_t> tokens, targets;  // [micro_batch_size, seq_length] each
};

struct TrainSettings {
  Precision precision = Precision::fp32;
  ScaleRounding scale_rounding = ScaleRounding::up;
  GradPrecision grad_precision = GradPrecision::fp32;
  bool average_in_collective = false;
  bool calculate_per_token_loss = false;  // sums over tokens, divided by the tokens of all ranks in the end
  std::optional<float> loss_scale;
  float clip_grad = 0;  // 0: no clipping
  AdamSettings adam;
  std::optional<float> grad_norm_skip_threshold = {};
};

LossReduction loss_reduction(const TrainSettings& settings);
// What multiplies the gradients of each microbatch.
float gradient_coefficient(const TrainSettings& settings, std::size_t microbatches);

struct StepResult {
  float loss = 0;  // mean over ranks and microbatches, or over tokens
  float grad_norm = 0;
  // Nothing was updated: loss_scale is set and a reduced gradient is not finite, or the norm is over
  // grad_norm_skip_threshold or not finite.
  bool skipped = false;
};

class Trainer {
 public:
  // main_params: by parameter index, as in param_shapes.
  Trainer(const Shape& shape, const TrainSettings& settings, std::vector<std::vector<float>> main_params);

  // Goes on after so many steps, from these moments; by parameter index, as main_params.
  void resume(std::vector<std::vector<float>> moment1, std::vector<std::vector<float>> moment2,
              int steps_taken);

  // batches[rank][microbatch]; all ranks the same number of microbatches, at least one each.
  StepResult step(const std::vector<std::vector<Batch>>& batches, float lr);

  int steps_taken() const { return adam_step_; }
  const std::vector<std::vector<float>>& main_params() const { return main_; }
  // main params as the model reads them: bf16 values, or FP32 for Precision::fp32.
  std::vector<std::vector<float>> weights() const;

 private:
  // Of all ranks and microbatches so far.
  struct Total {
    double loss = 0;
    int tokens = 0;
  };
  // One rank's main_grad by parameter index; adds its losses and tokens.
  std::vector<std::vector<float>> local_gradients(const Prepared<float>& prepared,
                                                  const std::vector<Batch>& microbatches, Total& total) const;
  // The gradients the optimizer sees.
  std::vector<std::vector<float>> reduced(std::vector<std::vector<std::vector<float>>> by_rank,
                                          int tokens) const;

  std::vector<ParamShape> params_;
  Model model_;
  TrainSettings settings_;
  std::vector<std::vector<float>> main_, moment1_, moment2_;
  int adam_step_ = 0;
};

}  // namespace gatherfuzz::reference
