// One microbatch forward and backward, from given weights: the reference for loss and local gradients.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/attention.h"
#include "reference/formats.h"
#include "reference/ops.h"
#include "reference/shape.h"

namespace gatherfuzz::reference {

// A weight as it is multiplied. An MX weight's planes are dequantized from its two quantizations.
template <typename Real>
struct PreparedWeight {
  std::vector<Real> values;      // [rows, cols]; the columnwise plane of an MX weight: what dgrad reads
  std::vector<Real> transposed;  // [cols, rows]; the rowwise plane of an MX weight: what forward reads
};
template <typename Real>
using Prepared = std::vector<PreparedWeight<Real>>;  // by parameter index

template <typename Real>
struct LossAndGradients {
  Real loss = 0;                             // mean over tokens, not scaled
  float logits_rms = 0;                      // input of hop2_bounds
  std::vector<std::vector<Real>> gradients;  // by parameter index, never rounded, of this microbatch alone
};

// Real = float is the oracle; its bits are defined. Real = double computes the same formulas wide but rounds
// activations at the same places: how far it is from float is how far honest implementations may differ.
template <typename Real>
class BasicModel {
 public:
  // Throws std::invalid_argument when heads do not divide hidden, or MX blocks of 32 do not fit the shape.
  BasicModel(const Shape& shape, Precision precision, ScaleRounding rounding);

  // weights: by parameter index, already bf16 values (FP32 for Precision::fp32). Once per weight version.
  Prepared<Real> prepare(const std::vector<std::vector<float>>& weights) const;

  // tokens, targets: [micro_batch_size, seq_length], each below vocab_size. Returns the loss.
  Real forward(const Prepared<Real>& weights, std::span<const std::int32_t> tokens,
               std::span<const std::int32_t> targets) const;

  // coefficient = loss_scale / num_microbatches multiplies the gradients, not the loss.
  LossAndGradients<Real> forward_backward(const Prepared<Real>& weights, std::span<const std::int32_t> tokens,
                                          std::span<const std::int32_t> targets, Real coefficient) const;

 private:
  using Values = std::vector<Real>;
  using Tokens = std::span<const std::int32_t>;

  // What backward needs of a layer.
  struct LayerState {
    Values in;
    RmsNorm<Real> norm1;
    Values qkv;
    Attention<Real> attention;
    Values middle;  // after the first residual
    RmsNorm<Real> norm2;
    Values fc1;
    Values swiglu;
    Values out;
  };
  struct ForwardState {
    std::vector<LayerState> layers;
    RmsNorm<Real> final_norm;
    Values logits;
    CrossEntropy<Real> cross_entropy;
  };
  enum class Blocks { rowwise, columnwise };

  ForwardState run_forward(const Prepared<Real>& weights, Tokens tokens, Tokens targets) const;
  LayerState run_layer(const Prepared<Real>& weights, int layer, Values in) const;
  // Returns the gradient of the layer's input; fills in the gradients of its weights.
  Values layer_backward(const Prepared<Real>& weights, int layer, const LayerState& state, const Values& dout,
                        std::vector<Values>& gradients) const;

  Values linear(const Prepared<Real>& weights, int index, const Values& x) const;
  Values linear_backward(const Prepared<Real>& weights, int index, const Values& x, const Values& dy,
                         std::vector<Values>& gradients) const;
  RmsNorm<Real> norm(const Prepared<Real>& weights, int index, const Values& x) const;
  Values norm_backward(const Prepared<Real>& weights, int index, const Values& x,
                       const RmsNorm<Real>& forward, const Values& dy, std::vector<Values>& gradients) const;
  Values add(const Values& a, const Values& b) const;

  // To the activation format: bf16, or nothing for Precision::fp32.
  Values rounded(Values values) const;
  // The operand of a product: through MX blocks for an MX weight, else unchanged.
  Values operand(int index, const Values& values, int cols, Blocks blocks) const;

  Shape shape_;
  AttentionShape attention_shape_;
  Precision precision_;
  ScaleRounding rounding_;
  std::vector<ParamShape> params_;
};

using Model = BasicModel<float>;
using WideModel = BasicModel<double>;

}  // namespace gatherfuzz::reference
