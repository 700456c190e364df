// The model: modules 0 (embedding), 1..num_layers (the layers) and num_layers + 1 (final norm, output, loss),
// each with a forward and a backward pass as ops on a sink.
//
// One microbatch is in flight at a time: activations exist once, and the next microbatch overwrites them.
// What is kept apart by microbatch is a slot: tokens, targets and loss. Forward runs the modules in ascending
// order, backward in descending order; module m's backward reads the gradient that module m+1's wrote.
#pragma once

#include "impl/model/layer.h"

namespace gatherfuzz {

class Model {
 public:
  // `params` in the order of model_params. Throws std::invalid_argument as check_config does, or if the count
  // differs.
  Model(Runtime& runtime, const ModelConfig& config, std::vector<ParamBinding> params);
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const ModelConfig& config() const { return config_; }
  int modules() const { return config_.num_layers + 2; }
  // Parameters that a module reads, by index, ascending.
  const std::vector<int>& params_of(int module) const { return params_of_[static_cast<std::size_t>(module)]; }

  // Slots are the microbatches 0..max_microbatches-1, and one for evaluation, which has no backward.
  int slots() const { return config_.max_microbatches + 1; }
  int evaluation_slot() const { return config_.max_microbatches; }

  void forward(OpSink& sink, int module, int slot) const;
  // `coefficient` = loss_scale / num_microbatches, with per_token_loss = loss_scale, multiplies the
  // gradients, not the loss.
  void backward(OpSink& sink, int module, int slot, float coefficient) const;

  View<int32_t> tokens(int slot) const;   // [micro_batch_size, seq_length]
  View<int32_t> targets(int slot) const;  // likewise
  View<float> loss(int slot) const;       // one value, the mean over the slot's tokens, or their sum
  // One value that is added to the first logit's gradient; zero unless somebody writes it.
  View<float> injection() const { return injection_; }

  // Whether both launch the same ops: all sizes and places in memory are equal.
  bool operator==(const Model&) const = default;

  // Parameters moved: passes recorded earlier must not be used any more.
  void bind(std::vector<ParamBinding> params);

 private:
  void allocate_output(Runtime& runtime);
  void output_forward(OpSink& sink, int slot) const;
  void output_backward(OpSink& sink, int slot, float coefficient) const;

  ModelConfig config_;
  std::vector<ParamBinding> params_;
  std::vector<std::vector<int>> params_of_;
  View<int32_t> batch_;  // [slots, tokens and targets]
  View<float> losses_;   // [slots]
  View<float> injection_;
  View<real> embedded_;              // the output of module 0
  std::vector<View<real>> dstates_;  // by module: the gradient of its output
  LayerGradients layer_gradients_;
  std::vector<Layer> layers_;
  View<real> final_norm_, logits_, dlogits_, dfinal_norm_;
  View<float> inverse_rms_, row_max_, row_sum_;
};

}  // namespace gatherfuzz
