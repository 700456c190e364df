#include "impl/kernels/mx_linear.h"

#include "impl/kernels/products.h"
#include "impl/numerics/mx.h"

namespace gatherfuzz {

namespace {

const float* load_rowwise(HostMemory& memory, const Operand& data, const Operand& scales, int cols) {
  float* values = memory.scratch(data.count());
  mx_dequantize_rowwise(memory.in<e4m3>(data), memory.in<e8m0>(scales),
                        data.count() / static_cast<uint32_t>(cols), cols, values);
  return values;
}

const float* load_columnwise(HostMemory& memory, const Operand& data, const Operand& scales, int cols) {
  float* values = memory.scratch(data.count());
  mx_dequantize_columnwise(memory.in<e4m3>(data), memory.in<e8m0>(scales),
                           data.count() / static_cast<uint32_t>(cols), cols, values);
  return values;
}

LinearShape shape_of(const Operand& x, int inputs, int outputs) {
  return {static_cast<int>(x.count()) / inputs, inputs, outputs};
}

}  // namespace

void MxLinear::host(HostMemory& memory) const {
  float* out = memory.staging(y);
  linear_forward(memory, shape_of(x, inputs, outputs), load_rowwise(memory, x, x_scale, inputs),
                 load_rowwise(memory, weight, weight_scale, inputs), out);
  memory.store(y, out);
}

void MxLinearDgrad::host(HostMemory& memory) const {
  float* out = memory.staging(dx);
  linear_dgrad(shape_of(dx, inputs, outputs), load_rowwise(memory, dy, dy_scale, outputs),
               load_columnwise(memory, weight, weight_scale, inputs), out);
  memory.store(dx, out);
}

void MxLinearWgrad::host(HostMemory& memory) const {
  linear_wgrad(memory, shape_of(x, inputs, outputs), load_columnwise(memory, dy, dy_scale, outputs),
               load_columnwise(memory, x, x_scale, inputs), main_grad);
}

}  // namespace gatherfuzz
