// A model on one rank of a simulated machine, its parameters allocated and filled, for the tests of the
// model.
#pragma once

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "impl/kernels/quantize_on_use.h"
#include "impl/model/passes.h"
#include "impl/runtime/local/world.h"

namespace gatherfuzz {

// Uniform bf16 values; gains around one. Same numbers with every compiler.
inline std::vector<std::vector<float>> seeded_weights(const ModelConfig& config, uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<std::vector<float>> weights;
  for (const ParamInfo& param : model_params(config)) {
    const float limit = param.rows == 1 ? 0.25f : 1.5f / std::sqrt(static_cast<float>(param.cols));
    std::vector<float>& values = weights.emplace_back(static_cast<std::size_t>(param.size()));
    for (float& value : values) {
      value = limit * (static_cast<float>(engine() >> 8) * 0x1p-23f - 1.0f) + (param.rows == 1 ? 1.0f : 0.0f);
      value = to_float(to_bf16(value));
    }
  }
  return weights;
}

inline std::vector<int32_t> seeded_tokens(const ModelConfig& config, uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<int32_t> tokens(static_cast<std::size_t>(config.tokens()));
  for (int32_t& token : tokens)
    token = static_cast<int32_t>(engine() % static_cast<uint32_t>(config.vocab_size));
  return tokens;
}

// Allocates storage for the parameters as the config has them, main_grad zeroed.
inline std::vector<ParamBinding> allocate_params(Runtime& runtime, const ModelConfig& config,
                                                 DType grad_dtype) {
  std::vector<ParamBinding> params;
  for (const ParamInfo& info : model_params(config)) {
    ParamBinding& param = params.emplace_back();
    const auto index = static_cast<uint32_t>(params.size() - 1);
    const auto n = static_cast<uint32_t>(info.size());
    if (config.mx_params && info.mxfp8) {
      const BufferId buffer = runtime.allocate("planes", 2 * n + n / 16, Fill::zero);
      param.rowwise = make_view<e4m3>(buffer, 0, n).tagged(index);
      param.columnwise = make_view<e4m3>(buffer, n, n).tagged(index);
      param.rowwise_scale = make_view<e8m0>(buffer, 2 * n, n / 32).tagged(index);
      param.columnwise_scale = make_view<e8m0>(buffer, 2 * n + n / 32, n / 32).tagged(index);
    } else {
      const BufferId buffer = runtime.allocate("weight", n * 4, Fill::zero);
      param.whole = make_real_view(buffer, 0, n, config.activation).tagged(index);
    }
    const BufferId grad = runtime.allocate("main_grad", n * 4, Fill::zero);
    param.main_grad = make_real_view(grad, 0, n, grad_dtype).tagged(index);
  }
  return params;
}

class ModelBench {
 public:
  ModelBench(const ModelConfig& config, MemoryKind memory, DType grad_dtype = DType::f32)
      : config_(config), world_(options(memory)) {
    run([&](Runtime& runtime) {
      params_ = allocate_params(runtime, config, grad_dtype);
      model_ = std::make_unique<Model>(runtime, config, params_);
      stream_ = runtime.create_stream("compute");
    });
  }

  void run(const std::function<void(Runtime&)>& body) { world_.run(body); }
  World& world() { return world_; }
  HostMemory& memory() { return world_.host()[0]; }
  const Model& model() const { return *model_; }
  const std::vector<ParamBinding>& params() const { return params_; }
  StreamId stream() const { return stream_; }

  void set_weights(const std::vector<std::vector<float>>& weights) {
    const std::vector<ParamInfo> infos = model_params(config_);
    for (std::size_t i = 0; i < params_.size(); ++i) {
      const ParamBinding& p = params_[i];
      if (!p.whole.empty()) {
        memory().store(p.whole, weights[i].data());
        continue;
      }
      std::vector<bf16> values;
      for (const float value : weights[i]) values.push_back(to_bf16(value));
      mx_quantize_rowwise(values.data(), infos[i].rows, infos[i].cols, config_.rounding,
                          memory().out<e4m3>(p.rowwise), memory().out<e8m0>(p.rowwise_scale));
      mx_quantize_columnwise(values.data(), infos[i].rows, infos[i].cols, config_.rounding,
                             memory().out<e4m3>(p.columnwise), memory().out<e8m0>(p.columnwise_scale));
    }
  }
  void set_batch(int slot, const std::vector<int32_t>& tokens, const std::vector<int32_t>& targets) {
    std::copy(tokens.begin(), tokens.end(), memory().out<int32_t>(model_->tokens(slot)));
    std::copy(targets.begin(), targets.end(), memory().out<int32_t>(model_->targets(slot)));
  }
  void forward(Passes& passes, int slot) {
    run([&](Runtime& runtime) {
      for (int m = 0; m < model_->modules(); ++m) passes.forward(runtime, stream_, m, slot);
    });
  }
  void forward_backward(Passes& passes, int slot, float coefficient) {
    run([&](Runtime& runtime) {
      for (int m = 0; m < model_->modules(); ++m) passes.forward(runtime, stream_, m, slot);
      for (int m = model_->modules() - 1; m >= 0; --m)
        passes.backward(runtime, stream_, m, slot, coefficient);
    });
  }
  float loss(int slot) { return *memory().in<float>(model_->loss(slot)); }
  std::vector<float> gradient(std::size_t param) {
    const View<real>& grad = params_[param].main_grad;
    const float* values = memory().load(grad);
    const std::vector<float> copy(values, values + grad.count());
    memory().end_op();
    return copy;
  }

 private:
  static WorldOptions options(MemoryKind memory) {
    WorldOptions options;
    options.memory = memory;
    return options;
  }

  ModelConfig config_;
  World world_;
  std::vector<ParamBinding> params_;
  std::unique_ptr<Model> model_;
  StreamId stream_ = 0;
};

}  // namespace gatherfuzz
