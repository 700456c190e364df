// One microbatch forward and backward, from given weights: the reference for loss and local gradients.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "reference/attention.h"
#include "reference/clones.h"
#include "reference/formats.h"
#include "reference/ops.h"
#include "reference/shape.h"

namespace gatherfuzz::reference {

// A weight as it is multiplied. An MX weight's planes are dequantized from its two quantizations.
template <typename Real>
struct PreparedWeight {
  std::vector<Real> values;      // [rows, cols]; the columnwise plane of an MX weight: what dgrad reads
  std::vector<Real> transposed;  // [cols, rows]; the rowwise plane of an MX weight: what forward reads
  MxPlane rowwise, columnwise;   // codes and scales of an MX weight, without values
};
template <typename Real>
using Prepared = std::vector<PreparedWeight<Real>>;  // by parameter index

template <typename Real>
struct LossAndGradients {
  Real loss = 0;         // mean or sum over tokens, not scaled
  int tokens = 0;        // that count
  float logits_rms = 0;  // input of hop2_bounds
  // By parameter index, never rounded, of this microbatch alone. With tied embeddings the embedding's is that
  // of its use as an embedding, and tied_output that of its use as the output layer; otherwise that is empty.
  std::vector<std::vector<Real>> gradients;
  std::vector<Real> tied_output = {};

  // What is added to a parameter's main_grad, in the order of backward.
  std::vector<const std::vector<Real>*> summands(std::size_t index) const {
    if (index != kEmbedding || tied_output.empty()) return {&gradients[index]};
    return {&tied_output, &gradients[index]};
  }
};

// To the nearest bf16 values.
template <typename Real>
GATHERFUZZ_REFERENCE_CLONES void round_all(std::vector<Real>& values) {
  for (Real& value : values) value = round_to_bf16(static_cast<float>(value));
}

template <typename Real>
float root_mean_square(const std::vector<Real>& values) {
  double sum = 0;
  for (const Real value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return static_cast<float>(std::sqrt(sum / static_cast<double>(values.size())));
}

// Real = float is the oracle; its bits are defined. Real = double computes the same formulas wide but rounds
// activations at the same places: how far it is from float is how far honest implementations may differ.
template <typename Real>
class BasicModel {
 public:
  // Throws std::invalid_argument when heads do not divide hidden, or MX blocks of 32 do not fit the shape.
  BasicModel(const Shape& shape, Precision precision, ScaleRounding rounding,
             LossReduction loss_reduction = LossReduction::mean)
      : shape_(shape),
        attention_shape_{shape.micro_batch_size, shape.seq_length, shape.num_attention_heads,
                         shape.head_dim()},
        precision_(precision),
        rounding_(rounding),
        loss_reduction_(loss_reduction),
        params_(param_shapes(shape)) {
    if (shape.hidden_size % shape.num_attention_heads != 0)
      throw std::invalid_argument("num_attention_heads must divide hidden_size");
    if (precision != Precision::mxfp8) return;
    for (const int size : {shape.hidden_size, shape.ffn_hidden_size, shape.tokens()})
      if (size % kMxBlock != 0)
        throw std::invalid_argument("mxfp8 needs hidden, ffn and tokens in multiples of 32, found " +
                                    std::to_string(size));
  }

  // weights: by parameter index, already bf16 values (FP32 for Precision::fp32). Once per weight version.
  Prepared<Real> prepare(const std::vector<std::vector<float>>& weights) const {
    Prepared<Real> prepared;
    for (const std::vector<float>& weight : weights)
      prepared.push_back(prepare(static_cast<int>(prepared.size()), weight));
    return prepared;
  }
  PreparedWeight<Real> prepare(int index, const std::vector<float>& weight) const {
    const int rows = param(index).rows, cols = param(index).cols;
    PreparedWeight<Real> prepared;
    prepared.values.assign(weight.begin(), weight.end());
    if (!quantizes(index)) {
      prepared.transposed = transpose(prepared.values, rows, cols);
      return prepared;
    }
    prepared.rowwise = quantized(weight, cols, Blocks::rowwise);
    prepared.columnwise = quantized(weight, cols, Blocks::columnwise);
    prepared.transposed = transpose(widened(std::move(prepared.rowwise.values)), rows, cols);
    prepared.values = widened(std::move(prepared.columnwise.values));
    return prepared;
  }

  // tokens, targets: [micro_batch_size, seq_length], each below vocab_size, or a masked target. Returns the
  // loss.
  Real forward(const Prepared<Real>& weights, std::span<const std::int32_t> tokens,
               std::span<const std::int32_t> targets) const {
    return run_forward(weights, tokens, targets).cross_entropy.loss;
  }

  // coefficient = loss_scale / num_microbatches, or loss_scale for a sum, multiplies the gradients, not the
  // loss.
  LossAndGradients<Real> forward_backward(const Prepared<Real>& weights, std::span<const std::int32_t> tokens,
                                          std::span<const std::int32_t> targets, Real coefficient) const {
    const ForwardState state = run_forward(weights, tokens, targets);
    LossAndGradients<Real> result{state.cross_entropy.loss, state.cross_entropy.tokens,
                                  root_mean_square(state.logits), std::vector<Values>(params_.size())};
    std::vector<Values>& gradients = result.gradients;
    const Values dlogits =
        rounded(cross_entropy_backward(state.cross_entropy, targets, coefficient, loss_reduction_));
    const Values dnorm =
        linear_backward(weights, output_index(shape_), state.final_norm.y, dlogits, gradients);
    Values dx = norm_backward(weights, final_norm_index(shape_), state.layers.back().out, state.final_norm,
                              dnorm, gradients);
    for (int layer = shape_.num_layers - 1; layer >= 0; --layer)
      dx = layer_backward(weights, layer, state.layers[static_cast<std::size_t>(layer)], dx, gradients);
    if (shape_.tied_embeddings) result.tied_output = std::move(gradients[kEmbedding]);
    gradients[kEmbedding] = embedding_backward(dx, tokens, shape_.vocab_size, shape_.hidden_size);
    return result;
  }

 private:
  using Values = std::vector<Real>;
  enum class Blocks { rowwise, columnwise };

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

  ForwardState run_forward(const Prepared<Real>& weights, std::span<const std::int32_t> tokens,
                           std::span<const std::int32_t> targets) const {
    ForwardState state;
    Values x = embedding(weights[kEmbedding].values, tokens, shape_.hidden_size);
    for (int layer = 0; layer < shape_.num_layers; ++layer) {
      state.layers.push_back(run_layer(weights, layer, std::move(x)));
      x = state.layers.back().out;
    }
    state.final_norm = norm(weights, final_norm_index(shape_), x);
    state.logits = linear(weights, output_index(shape_), state.final_norm.y);
    state.cross_entropy = cross_entropy(state.logits, targets, shape_.vocab_size, loss_reduction_);
    return state;
  }

  LayerState run_layer(const Prepared<Real>& weights, int layer, Values in) const {
    const LayerParams params = layer_params(layer);
    LayerState state;
    state.in = std::move(in);
    state.norm1 = norm(weights, params.norm1, state.in);
    state.qkv = linear(weights, params.qkv, state.norm1.y);
    state.attention = attention(attention_shape_, state.qkv);
    state.attention.context = rounded(std::move(state.attention.context));
    state.middle = add(state.in, linear(weights, params.proj, state.attention.context));
    state.norm2 = norm(weights, params.norm2, state.middle);
    state.fc1 = linear(weights, params.fc1, state.norm2.y);
    state.swiglu = rounded(swiglu(state.fc1, shape_.ffn_hidden_size));
    state.out = add(state.middle, linear(weights, params.fc2, state.swiglu));
    return state;
  }

  // Returns the gradient of the layer's input; fills in the gradients of its weights.
  Values layer_backward(const Prepared<Real>& weights, int layer, const LayerState& state, const Values& dout,
                        std::vector<Values>& gradients) const {
    const LayerParams params = layer_params(layer);
    const Values dswiglu = linear_backward(weights, params.fc2, state.swiglu, dout, gradients);
    const Values dfc1 = rounded(swiglu_backward(dswiglu, state.fc1, shape_.ffn_hidden_size));
    const Values dnorm2 = linear_backward(weights, params.fc1, state.norm2.y, dfc1, gradients);
    const Values dmiddle =
        add(dout, norm_backward(weights, params.norm2, state.middle, state.norm2, dnorm2, gradients));
    const Values dcontext =
        linear_backward(weights, params.proj, state.attention.context, dmiddle, gradients);
    const Values dqkv = rounded(attention_backward(attention_shape_, state.qkv, state.attention, dcontext));
    const Values dnorm1 = linear_backward(weights, params.qkv, state.norm1.y, dqkv, gradients);
    return add(dmiddle, norm_backward(weights, params.norm1, state.in, state.norm1, dnorm1, gradients));
  }

  Values linear(const Prepared<Real>& weights, int index, const Values& x) const {
    const int rows = param(index).rows, cols = param(index).cols;
    return rounded(product(operand(index, x, cols, Blocks::rowwise), weight(weights, index).transposed,
                           shape_.tokens(), cols, rows));
  }

  Values linear_backward(const Prepared<Real>& weights, int index, const Values& x, const Values& dy,
                         std::vector<Values>& gradients) const {
    const int tokens = shape_.tokens();
    const int rows = param(index).rows, cols = param(index).cols;
    gradients[static_cast<std::size_t>(index)] =
        product(transpose(operand(index, dy, rows, Blocks::columnwise), tokens, rows),
                operand(index, x, cols, Blocks::columnwise), rows, tokens, cols);
    return rounded(product(operand(index, dy, rows, Blocks::rowwise), weight(weights, index).values, tokens,
                           rows, cols));
  }

  RmsNorm<Real> norm(const Prepared<Real>& weights, int index, const Values& x) const {
    RmsNorm<Real> out = rms_norm(x, weight(weights, index).values);
    out.y = rounded(std::move(out.y));
    return out;
  }

  Values norm_backward(const Prepared<Real>& weights, int index, const Values& x,
                       const RmsNorm<Real>& forward, const Values& dy, std::vector<Values>& gradients) const {
    RmsNormGradients<Real> out = rms_norm_backward(dy, x, weight(weights, index).values, forward.inverse_rms);
    gradients[static_cast<std::size_t>(index)] = std::move(out.dgain);
    return rounded(std::move(out.dx));
  }

  Values add(const Values& a, const Values& b) const {
    Values sum(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) sum[i] = a[i] + b[i];
    return rounded(std::move(sum));
  }

  // To the activation format: bf16, or nothing for Precision::fp32.
  Values rounded(Values values) const {
    if (precision_ != Precision::fp32) round_all(values);
    return values;
  }

  // The operand of a product: through MX blocks for an MX weight, else unchanged.
  Values operand(int index, const Values& values, int cols, Blocks blocks) const {
    if (!quantizes(index)) return values;
    if constexpr (std::is_same_v<Real, float>) {
      return quantized(values, cols, blocks).values;
    } else {
      return widened(quantized(std::vector<float>(values.begin(), values.end()), cols, blocks).values);
    }
  }
  bool quantizes(int index) const { return precision_ == Precision::mxfp8 && param(index).mx; }
  MxPlane quantized(std::span<const float> values, int cols, Blocks blocks) const {
    const int rows = static_cast<int>(values.size()) / cols;
    return blocks == Blocks::rowwise ? quantize_rowwise(values, rows, cols, rounding_)
                                     : quantize_columnwise(values, rows, cols, rounding_);
  }
  static Values widened(std::vector<float>&& values) {
    if constexpr (std::is_same_v<Real, float>) return std::move(values);
    return Values(values.begin(), values.end());
  }

  const ParamShape& param(int index) const { return params_[static_cast<std::size_t>(index)]; }
  static const PreparedWeight<Real>& weight(const Prepared<Real>& weights, int index) {
    return weights[static_cast<std::size_t>(index)];
  }

  Shape shape_;
  AttentionShape attention_shape_;
  Precision precision_;
  ScaleRounding rounding_;
  LossReduction loss_reduction_;
  std::vector<ParamShape> params_;
};

using Model = BasicModel<float>;
using WideModel = BasicModel<double>;
extern template class BasicModel<float>;
extern template class BasicModel<double>;

}  // namespace gatherfuzz::reference
