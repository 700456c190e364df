#include "reference/model.h"

#include <cmath>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "reference/clones.h"

namespace gatherfuzz::reference {
namespace {

template <typename Real>
float root_mean_square(const std::vector<Real>& values) {
  double sum = 0;
  for (const Real value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return static_cast<float>(std::sqrt(sum / static_cast<double>(values.size())));
}

template <typename Real>
GATHERFUZZ_REFERENCE_CLONES void round_all(std::vector<Real>& values) {
  for (Real& value : values) value = round_to_bf16(static_cast<float>(value));
}

void require_mx_shape(const Shape& shape) {
  for (const int size : {shape.hidden_size, shape.ffn_hidden_size, shape.tokens()}) {
    if (size % kMxBlock != 0) {
      throw std::invalid_argument("mxfp8 needs hidden, ffn and tokens in multiples of 32, found " +
                                  std::to_string(size));
    }
  }
}

}  // namespace

template <typename Real>
BasicModel<Real>::BasicModel(const Shape& shape, Precision precision, ScaleRounding rounding)
    : shape_(shape),
      attention_shape_{shape.micro_batch_size, shape.seq_length, shape.num_attention_heads, shape.head_dim()},
      precision_(precision),
      rounding_(rounding),
      params_(param_shapes(shape)) {
  if (shape.hidden_size % shape.num_attention_heads != 0) {
    throw std::invalid_argument("num_attention_heads must divide hidden_size");
  }
  if (precision == Precision::mxfp8) require_mx_shape(shape);
}

template <typename Real>
Prepared<Real> BasicModel<Real>::prepare(const std::vector<std::vector<float>>& weights) const {
  Prepared<Real> prepared(params_.size());
  for (std::size_t i = 0; i < params_.size(); ++i) {
    const int index = static_cast<int>(i);
    const Values values(weights[i].begin(), weights[i].end());
    prepared[i].values = operand(index, values, params_[i].cols, Blocks::columnwise);
    prepared[i].transposed =
        transpose(operand(index, values, params_[i].cols, Blocks::rowwise), params_[i].rows, params_[i].cols);
  }
  return prepared;
}

template <typename Real>
Real BasicModel<Real>::forward(const Prepared<Real>& weights, Tokens tokens, Tokens targets) const {
  return run_forward(weights, tokens, targets).cross_entropy.loss;
}

template <typename Real>
LossAndGradients<Real> BasicModel<Real>::forward_backward(const Prepared<Real>& weights, Tokens tokens,
                                                          Tokens targets, Real coefficient) const {
  const ForwardState state = run_forward(weights, tokens, targets);
  LossAndGradients<Real> result{state.cross_entropy.loss, root_mean_square(state.logits),
                                std::vector<Values>(params_.size())};
  std::vector<Values>& gradients = result.gradients;
  const Values dlogits = rounded(cross_entropy_backward(state.cross_entropy, targets, coefficient));
  const Values dnorm = linear_backward(weights, output_index(shape_), state.final_norm.y, dlogits, gradients);
  Values dx = norm_backward(weights, final_norm_index(shape_), state.layers.back().out, state.final_norm,
                            dnorm, gradients);
  for (int layer = shape_.num_layers - 1; layer >= 0; --layer) {
    dx = layer_backward(weights, layer, state.layers[static_cast<std::size_t>(layer)], dx, gradients);
  }
  gradients[kEmbedding] = embedding_backward(dx, tokens, shape_.vocab_size, shape_.hidden_size);
  return result;
}

template <typename Real>
auto BasicModel<Real>::run_forward(const Prepared<Real>& weights, Tokens tokens, Tokens targets) const
    -> ForwardState {
  ForwardState state;
  Values x = embedding(weights[kEmbedding].values, tokens, shape_.hidden_size);
  for (int layer = 0; layer < shape_.num_layers; ++layer) {
    state.layers.push_back(run_layer(weights, layer, std::move(x)));
    x = state.layers.back().out;
  }
  state.final_norm = norm(weights, final_norm_index(shape_), x);
  state.logits = linear(weights, output_index(shape_), state.final_norm.y);
  state.cross_entropy = cross_entropy(state.logits, targets, shape_.vocab_size);
  return state;
}

template <typename Real>
auto BasicModel<Real>::run_layer(const Prepared<Real>& weights, int layer, Values in) const -> LayerState {
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

template <typename Real>
auto BasicModel<Real>::layer_backward(const Prepared<Real>& weights, int layer, const LayerState& state,
                                      const Values& dout, std::vector<Values>& gradients) const -> Values {
  const LayerParams params = layer_params(layer);
  const Values dswiglu = linear_backward(weights, params.fc2, state.swiglu, dout, gradients);
  const Values dfc1 = rounded(swiglu_backward(dswiglu, state.fc1, shape_.ffn_hidden_size));
  const Values dnorm2 = linear_backward(weights, params.fc1, state.norm2.y, dfc1, gradients);
  const Values dmiddle =
      add(dout, norm_backward(weights, params.norm2, state.middle, state.norm2, dnorm2, gradients));
  const Values dcontext = linear_backward(weights, params.proj, state.attention.context, dmiddle, gradients);
  const Values dqkv = rounded(attention_backward(attention_shape_, state.qkv, state.attention, dcontext));
  const Values dnorm1 = linear_backward(weights, params.qkv, state.norm1.y, dqkv, gradients);
  return add(dmiddle, norm_backward(weights, params.norm1, state.in, state.norm1, dnorm1, gradients));
}

template <typename Real>
auto BasicModel<Real>::linear(const Prepared<Real>& weights, int index, const Values& x) const -> Values {
  const std::size_t i = static_cast<std::size_t>(index);
  const int inputs = params_[i].cols;
  return rounded(product(operand(index, x, inputs, Blocks::rowwise), weights[i].transposed, shape_.tokens(),
                         inputs, params_[i].rows));
}

template <typename Real>
auto BasicModel<Real>::linear_backward(const Prepared<Real>& weights, int index, const Values& x,
                                       const Values& dy, std::vector<Values>& gradients) const -> Values {
  const std::size_t i = static_cast<std::size_t>(index);
  const int tokens = shape_.tokens();
  const int inputs = params_[i].cols;
  const int outputs = params_[i].rows;
  gradients[i] = product(transpose(operand(index, dy, outputs, Blocks::columnwise), tokens, outputs),
                         operand(index, x, inputs, Blocks::columnwise), outputs, tokens, inputs);
  return rounded(
      product(operand(index, dy, outputs, Blocks::rowwise), weights[i].values, tokens, outputs, inputs));
}

template <typename Real>
RmsNorm<Real> BasicModel<Real>::norm(const Prepared<Real>& weights, int index, const Values& x) const {
  RmsNorm<Real> out = rms_norm(x, weights[static_cast<std::size_t>(index)].values);
  out.y = rounded(std::move(out.y));
  return out;
}

template <typename Real>
auto BasicModel<Real>::norm_backward(const Prepared<Real>& weights, int index, const Values& x,
                                     const RmsNorm<Real>& forward, const Values& dy,
                                     std::vector<Values>& gradients) const -> Values {
  const std::size_t i = static_cast<std::size_t>(index);
  RmsNormGradients<Real> out = rms_norm_backward(dy, x, weights[i].values, forward.inverse_rms);
  gradients[i] = std::move(out.dgain);
  return rounded(std::move(out.dx));
}

template <typename Real>
auto BasicModel<Real>::add(const Values& a, const Values& b) const -> Values {
  Values sum(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) sum[i] = a[i] + b[i];
  return rounded(std::move(sum));
}

template <typename Real>
auto BasicModel<Real>::rounded(Values values) const -> Values {
  if (precision_ != Precision::fp32) round_all(values);
  return values;
}

template <typename Real>
auto BasicModel<Real>::operand(int index, const Values& values, int cols, Blocks blocks) const -> Values {
  if (precision_ != Precision::mxfp8 || !params_[static_cast<std::size_t>(index)].mx) return values;
  const int rows = static_cast<int>(values.size()) / cols;
  const auto quantized = [&](std::span<const float> floats) {
    MxPlane plane = blocks == Blocks::rowwise ? quantize_rowwise(floats, rows, cols, rounding_)
                                              : quantize_columnwise(floats, rows, cols, rounding_);
    return std::move(plane.values);
  };
  if constexpr (std::is_same_v<Real, float>) {
    return quantized(values);
  } else {
    const std::vector<float> dequantized = quantized(std::vector<float>(values.begin(), values.end()));
    return Values(dequantized.begin(), dequantized.end());
  }
}

template class BasicModel<float>;
template class BasicModel<double>;

}  // namespace gatherfuzz::reference
