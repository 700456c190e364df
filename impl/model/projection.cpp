#include "impl/model/projection.h"

#include "impl/kernels/linear.h"
#include "impl/kernels/mx_linear.h"
#include "impl/kernels/quantize_activation.h"
#include "impl/kernels/quantize_on_use.h"

namespace gatherfuzz {

namespace {

void quantize(OpSink& sink, const ModelConfig& config, const View<real>& source, const MxViews& to,
              int cols) {
  sink.launch(QuantizeActivation{source, to.rowwise, to.rowwise_scale, to.columnwise, to.columnwise_scale,
                                 cols, config.rounding});
}

}  // namespace

MxViews Projection::planes(const ModelConfig& config, const ParamBinding& param) const {
  MxViews views{param.rowwise, param.rowwise_scale, param.columnwise, param.columnwise_scale};
  if (config.mx_params) return views;
  views = weight;
  views.rowwise.tag = views.rowwise_scale.tag = views.columnwise.tag = views.columnwise_scale.tag =
      param.whole.tag;
  return views;
}

void Projection::forward(OpSink& sink, const ModelConfig& config, const ParamBinding& param) const {
  if (!mx) {
    sink.launch(Linear{x, param.whole, y, inputs, outputs});
    return;
  }
  const MxViews w = planes(config, param);
  if (!config.mx_params)
    sink.launch(QuantizeOnUse{param.whole, w.rowwise, w.rowwise_scale, w.columnwise, w.columnwise_scale,
                              inputs, config.rounding});
  quantize(sink, config, x, x_quantized, inputs);
  sink.launch(MxLinear{x_quantized.rowwise, x_quantized.rowwise_scale, w.rowwise, w.rowwise_scale, y, inputs,
                       outputs});
}

void Projection::backward(OpSink& sink, const ModelConfig& config, const ParamBinding& param) const {
  if (!mx) {
    sink.launch(LinearDgrad{dy, param.whole, dx, inputs, outputs});
    sink.launch(LinearWgrad{dy, x, param.main_grad, inputs, outputs});
    return;
  }
  const MxViews w = planes(config, param);
  quantize(sink, config, dy, dy_quantized, outputs);
  sink.launch(MxLinearDgrad{dy_quantized.rowwise, dy_quantized.rowwise_scale, w.columnwise,
                            w.columnwise_scale, dx, inputs, outputs});
  sink.launch(MxLinearWgrad{dy_quantized.columnwise, dy_quantized.columnwise_scale, x_quantized.columnwise,
                            x_quantized.columnwise_scale, param.main_grad, inputs, outputs});
}

}  // namespace gatherfuzz
