#include "impl/model/layer.h"

#include "impl/kernels/attention.h"
#include "impl/kernels/residual_add.h"
#include "impl/kernels/rms_norm.h"
#include "impl/kernels/swiglu.h"

namespace gatherfuzz {

// Views are planned in the order in which the passes write them.
void LayerGradients::allocate(Runtime& runtime, const ModelConfig& config) {
  const int tokens = config.tokens();
  const int hidden = tokens * config.hidden_size;
  const int ffn = tokens * config.ffn_hidden_size;
  const DType dtype = config.activation;
  BufferPlan plan;
  plan.add(dswiglu, ffn, dtype);
  plan.add(dfc1, 2 * ffn, dtype);
  for (View<real>* view : {&dnorm2_out, &dnorm2, &dmiddle, &dcontext}) plan.add(*view, hidden, dtype);
  plan.add(dqkv, 3 * hidden, dtype);
  for (View<real>* view : {&dnorm1_out, &dnorm1}) plan.add(*view, hidden, dtype);
  if (config.mx) {
    plan.add(dout_quantized, tokens, config.hidden_size);
    plan.add(dfc1_quantized, tokens, 2 * config.ffn_hidden_size);
    plan.add(dmiddle_quantized, tokens, config.hidden_size);
    plan.add(dqkv_quantized, tokens, 3 * config.hidden_size);
  }
  plan.allocate(runtime, "layer_gradients", Fill::uninitialized);
}

void Layer::plan(const ModelConfig& config, BufferPlan& activations, BufferPlan& weights) {
  const int tokens = config.tokens();
  const int hidden = tokens * config.hidden_size;
  const int ffn = tokens * config.ffn_hidden_size;
  const DType dtype = config.activation;
  // Backward reads the last three as one range; without MXFP8 also the four before them, the inputs of
  // products.
  for (View<real>* view : {&attention_out_, &fc2_out_, &out_, &norm1_, &context_, &norm2_})
    activations.add(*view, hidden, dtype);
  activations.add(swiglu_, ffn, dtype);
  activations.add(qkv_, 3 * hidden, dtype);
  activations.add(middle_, hidden, dtype);
  activations.add(fc1_, 2 * ffn, dtype);
  for (View<float>* view : {&norm1_inverse_rms_, &norm2_inverse_rms_}) activations.add(*view, tokens);
  for (View<float>* view : {&row_max_, &row_sum_})
    activations.add(*view, tokens * config.num_attention_heads);
  for (Projection* p : {&qkv_projection_, &proj_projection_, &fc1_projection_, &fc2_projection_}) {
    if (!p->mx) continue;
    activations.add(p->x_quantized, tokens, p->inputs);
    if (!config.mx_params) weights.add(p->weight, p->outputs, p->inputs);
  }
}

void Layer::allocate(Runtime& runtime, const ModelConfig& config, int index, const View<real>& in,
                     const View<real>& din, const View<real>& dout, const LayerGradients& gradients) {
  const int hidden = config.hidden_size;
  const int ffn = config.ffn_hidden_size;
  index_ = layer_params(index);
  in_ = in;
  din_ = din;
  dout_ = dout;
  gradients_ = gradients;
  qkv_projection_ = {
      hidden, 3 * hidden, {}, {}, gradients.dqkv, gradients.dnorm1_out, {}, gradients.dqkv_quantized, {}};
  proj_projection_ = {
      hidden, hidden, {}, {}, gradients.dmiddle, gradients.dcontext, {}, gradients.dmiddle_quantized, {}};
  fc1_projection_ = {
      hidden, 2 * ffn, {}, {}, gradients.dfc1, gradients.dnorm2_out, {}, gradients.dfc1_quantized, {}};
  fc2_projection_ = {ffn, hidden, {}, {}, dout, gradients.dswiglu, {}, gradients.dout_quantized, {}};
  const bool mx = config.mx && !config.stays_bf16(index);
  for (Projection* p : {&qkv_projection_, &proj_projection_, &fc1_projection_, &fc2_projection_}) p->mx = mx;
  BufferPlan activations;
  BufferPlan weights;
  plan(config, activations, weights);
  activations.allocate(runtime, "layer_activations", Fill::uninitialized);
  if (mx && !config.mx_params) weights.allocate(runtime, "layer_quantized_weights", Fill::uninitialized);
  auto connect = [](Projection& projection, const View<real>& x, const View<real>& y) {
    projection.x = x;
    projection.y = y;
  };
  connect(qkv_projection_, norm1_, qkv_);
  connect(proj_projection_, context_, attention_out_);
  connect(fc1_projection_, norm2_, fc1_);
  connect(fc2_projection_, swiglu_, fc2_out_);
}

void Layer::forward(OpSink& sink, const ModelConfig& config, const std::vector<ParamBinding>& params) const {
  sink.launch(RmsNorm{in_, param(params, index_.norm1).whole, norm1_, norm1_inverse_rms_});
  qkv_projection_.forward(sink, config, param(params, index_.qkv));
  sink.launch(Attention{qkv_, context_, row_max_, row_sum_, config.seq_length, config.num_attention_heads});
  proj_projection_.forward(sink, config, param(params, index_.proj));
  sink.launch(ResidualAdd{in_, attention_out_, middle_});
  sink.launch(RmsNorm{middle_, param(params, index_.norm2).whole, norm2_, norm2_inverse_rms_});
  fc1_projection_.forward(sink, config, param(params, index_.fc1));
  sink.launch(Swiglu{fc1_, swiglu_, config.ffn_hidden_size});
  fc2_projection_.forward(sink, config, param(params, index_.fc2));
  sink.launch(ResidualAdd{middle_, fc2_out_, out_});
}

void Layer::backward(OpSink& sink, const ModelConfig& config, const std::vector<ParamBinding>& params) const {
  const LayerGradients& g = gradients_;
  const ParamBinding& norm1 = param(params, index_.norm1);
  const ParamBinding& norm2 = param(params, index_.norm2);
  fc2_projection_.backward(sink, config, param(params, index_.fc2));
  sink.launch(SwigluBackward{g.dswiglu, fc1_, g.dfc1, config.ffn_hidden_size});
  fc1_projection_.backward(sink, config, param(params, index_.fc1));
  sink.launch(
      RmsNormBackward{g.dnorm2_out, middle_, norm2_inverse_rms_, norm2.whole, g.dnorm2, norm2.main_grad});
  sink.launch(ResidualAdd{dout_, g.dnorm2, g.dmiddle});
  proj_projection_.backward(sink, config, param(params, index_.proj));
  sink.launch(AttentionBackward{qkv_, g.dcontext, row_max_, row_sum_, g.dqkv, config.seq_length,
                                config.num_attention_heads});
  qkv_projection_.backward(sink, config, param(params, index_.qkv));
  sink.launch(RmsNormBackward{g.dnorm1_out, in_, norm1_inverse_rms_, norm1.whole, g.dnorm1, norm1.main_grad});
  sink.launch(ResidualAdd{g.dmiddle, g.dnorm1, din_});
}

}  // namespace gatherfuzz
