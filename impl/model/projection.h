// One of a layer's linear maps (qkv, proj, fc1, fc2): its operands, and the ops of its forward and backward
// in the recipe's arithmetic.
#pragma once

#include "impl/model/buffer_plan.h"
#include "impl/model/config.h"
#include "impl/runtime/composite.h"

namespace gatherfuzz {

// Where one parameter lives now. Views are tagged with the parameter's index; those that the recipe does not
// store are empty.
struct ParamBinding {
  View<real> whole;
  View<e4m3> rowwise;
  View<e8m0> rowwise_scale;
  View<e4m3> columnwise;
  View<e8m0> columnwise_scale;
  View<real> main_grad;  // float or bf16
  bool operator==(const ParamBinding&) const = default;
};

struct Projection {
  int inputs = 0;
  int outputs = 0;
  View<real> x;         // [tokens, inputs], written before forward
  View<real> y;         // [tokens, outputs], written by forward
  View<real> dy;        // written before backward
  View<real> dx;        // written by backward
  MxViews x_quantized;  // kept for wgrad
  MxViews dy_quantized;
  MxViews weight;   // the planes of a weight that is stored whole, written by forward and kept for dgrad
  bool mx = false;  // multiplies in MXFP8

  void forward(OpSink& sink, const ModelConfig& config, const ParamBinding& param) const;
  // Accumulates into param.main_grad.
  void backward(OpSink& sink, const ModelConfig& config, const ParamBinding& param) const;
  bool operator==(const Projection&) const = default;

 private:
  // The planes to multiply with: the parameter's own, or those of `weight`.
  MxViews planes(const ModelConfig& config, const ParamBinding& param) const;
};

}  // namespace gatherfuzz
