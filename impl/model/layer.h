// One transformer layer: its activations, and its passes as ops.
//   middle = in + proj(attention(qkv(norm1(in))));  out = middle + fc2(swiglu(fc1(norm2(middle))))
#pragma once

#include "impl/model/projection.h"

namespace gatherfuzz {

// Gradients inside a layer's backward. All layers use one workspace, one after the other.
struct LayerGradients {
  View<real> dswiglu, dfc1, dnorm2_out, dnorm2, dmiddle, dcontext, dqkv, dnorm1_out, dnorm1;
  MxViews dout_quantized, dfc1_quantized, dmiddle_quantized, dqkv_quantized;

  void allocate(Runtime& runtime, const ModelConfig& config);
  bool operator==(const LayerGradients&) const = default;
};

class Layer {
 public:
  // `in` and `din` belong to the module below, `dout` to the module above, `gradients` to the model.
  void allocate(Runtime& runtime, const ModelConfig& config, int index, const View<real>& in,
                const View<real>& din, const View<real>& dout, const LayerGradients& gradients);

  void forward(OpSink& sink, const ModelConfig& config, const std::vector<ParamBinding>& params) const;
  // Reads dout, writes din, accumulates the gradients of the layer's parameters.
  void backward(OpSink& sink, const ModelConfig& config, const std::vector<ParamBinding>& params) const;

  const View<real>& out() const { return out_; }
  bool operator==(const Layer&) const = default;

 private:
  const ParamBinding& param(const std::vector<ParamBinding>& params, int index) const {
    return params[static_cast<std::size_t>(index)];
  }
  void plan(const ModelConfig& config, BufferPlan& activations, BufferPlan& weights);

  LayerParams index_{};
  View<real> in_, norm1_, qkv_, context_, attention_out_, middle_, norm2_, fc1_, swiglu_, fc2_out_, out_;
  View<float> norm1_inverse_rms_, norm2_inverse_rms_, row_max_, row_sum_;
  View<real> din_, dout_;
  LayerGradients gradients_;
  Projection qkv_projection_, proj_projection_, fc1_projection_, fc2_projection_;
};

}  // namespace gatherfuzz
