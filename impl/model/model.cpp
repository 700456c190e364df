#include "impl/model/model.h"

#include <algorithm>
#include <stdexcept>

#include "impl/kernels/cross_entropy.h"
#include "impl/kernels/embedding.h"
#include "impl/kernels/linear.h"
#include "impl/kernels/rms_norm.h"

namespace gatherfuzz {

namespace {

std::vector<std::vector<int>> params_by_module(const ModelConfig& config) {
  std::vector<std::vector<int>> params = {{kEmbeddingParam}};
  for (int layer = 0; layer < config.num_layers; ++layer) {
    const LayerParams p = layer_params(layer);
    params.push_back({p.norm1, p.qkv, p.proj, p.norm2, p.fc1, p.fc2});
  }
  const auto [first, second] = std::minmax({final_norm_param(config), output_param(config)});
  params.push_back({first, second});
  return params;
}

}  // namespace

Model::Model(Runtime& runtime, const ModelConfig& config, std::vector<ParamBinding> params)
    : config_(config), params_of_(params_by_module(config)) {
  check_config(config);
  bind(std::move(params));
  const auto layers = static_cast<std::size_t>(config.num_layers);
  const int state = config.tokens() * config.hidden_size;

  BufferPlan batch;
  batch.add(batch_, slots() * 2 * config.tokens());
  batch.allocate(runtime, "batch", Fill::uninitialized);
  BufferPlan losses;
  losses.add(losses_, slots());
  losses.allocate(runtime, "loss", Fill::uninitialized);
  BufferPlan injection;
  injection.add(injection_, 1);
  injection.allocate(runtime, "injection", Fill::zero);
  BufferPlan embedded;
  embedded.add(embedded_, state, config.activation);
  embedded.allocate(runtime, "embedding_activations", Fill::uninitialized);
  BufferPlan dstates;
  dstates_.resize(layers + 1);
  for (View<real>& view : dstates_) dstates.add(view, state, config.activation);
  dstates.allocate(runtime, "state_gradients", Fill::uninitialized);

  layer_gradients_.allocate(runtime, config);
  layers_.resize(layers);
  for (std::size_t i = 0; i < layers; ++i) {
    const View<real>& in = i == 0 ? embedded_ : layers_[i - 1].out();
    layers_[i].allocate(runtime, config, static_cast<int>(i), in, dstates_[i], dstates_[i + 1],
                        layer_gradients_);
  }
  allocate_output(runtime);
}

void Model::allocate_output(Runtime& runtime) {
  const int tokens = config_.tokens();
  BufferPlan activations;
  activations.add(final_norm_, tokens * config_.hidden_size, config_.activation);
  activations.add(inverse_rms_, tokens);
  activations.add(logits_, tokens * config_.vocab_size, config_.activation);
  activations.add(row_max_, tokens);
  activations.add(row_sum_, tokens);
  activations.allocate(runtime, "output_activations", Fill::uninitialized);
  BufferPlan gradients;
  gradients.add(dlogits_, tokens * config_.vocab_size, config_.activation);
  gradients.add(dfinal_norm_, tokens * config_.hidden_size, config_.activation);
  gradients.allocate(runtime, "output_gradients", Fill::uninitialized);
}

void Model::bind(std::vector<ParamBinding> params) {
  const std::size_t wanted = model_params(config_).size();
  if (params.size() != wanted)
    throw std::invalid_argument("the model has " + std::to_string(wanted) +
                                " parameters, found bindings of " + std::to_string(params.size()));
  params_ = std::move(params);
}

View<int32_t> Model::tokens(int slot) const {
  const auto n = static_cast<uint32_t>(config_.tokens());
  return batch_.slice(static_cast<uint32_t>(slot) * 2 * n, n);
}

View<int32_t> Model::targets(int slot) const {
  const auto n = static_cast<uint32_t>(config_.tokens());
  return batch_.slice(static_cast<uint32_t>(slot) * 2 * n + n, n);
}

View<float> Model::loss(int slot) const {
  return losses_.slice(static_cast<uint32_t>(slot), 1);
}

void Model::forward(OpSink& sink, int module, int slot) const {
  if (module == 0) {
    sink.launch(Embedding{tokens(slot), params_[kEmbeddingParam].whole, embedded_, config_.hidden_size});
  } else if (module <= config_.num_layers) {
    layers_[static_cast<std::size_t>(module) - 1].forward(sink, config_, params_);
  } else {
    output_forward(sink, slot);
  }
}

void Model::backward(OpSink& sink, int module, int slot, float coefficient) const {
  if (module == 0) {
    sink.launch(EmbeddingBackward{tokens(slot), dstates_[0], params_[kEmbeddingParam].main_grad,
                                  config_.hidden_size});
  } else if (module <= config_.num_layers) {
    layers_[static_cast<std::size_t>(module) - 1].backward(sink, config_, params_);
  } else {
    output_backward(sink, slot, coefficient);
  }
}

void Model::output_forward(OpSink& sink, int slot) const {
  const ParamBinding& norm = params_[static_cast<std::size_t>(final_norm_param(config_))];
  const ParamBinding& output = params_[static_cast<std::size_t>(output_param(config_))];
  const View<real>& x = layers_.empty() ? embedded_ : layers_.back().out();
  sink.launch(RmsNorm{x, norm.whole, final_norm_, inverse_rms_});
  sink.launch(Linear{final_norm_, output.whole, logits_, config_.hidden_size, config_.vocab_size});
  sink.launch(CrossEntropy{logits_, targets(slot), loss(slot), row_max_, row_sum_, config_.per_token_loss});
}

void Model::output_backward(OpSink& sink, int slot, float coefficient) const {
  const ParamBinding& norm = params_[static_cast<std::size_t>(final_norm_param(config_))];
  const ParamBinding& output = params_[static_cast<std::size_t>(output_param(config_))];
  const View<real>& x = layers_.empty() ? embedded_ : layers_.back().out();
  sink.launch(CrossEntropyBackward{logits_, targets(slot), row_max_, row_sum_, injection_, dlogits_,
                                   Coefficient{coefficient}, config_.per_token_loss});
  sink.launch(LinearDgrad{dlogits_, output.whole, dfinal_norm_, config_.hidden_size, config_.vocab_size});
  sink.launch(LinearWgrad{dlogits_, final_norm_, output.main_grad, config_.hidden_size, config_.vocab_size});
  sink.launch(RmsNormBackward{dfinal_norm_, x, inverse_rms_, norm.whole, dstates_.back(), norm.main_grad});
}

}  // namespace gatherfuzz
