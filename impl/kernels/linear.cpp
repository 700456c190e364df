#include "impl/kernels/linear.h"

#include "impl/kernels/products.h"

namespace gatherfuzz {

namespace {

LinearShape shape_of(const Operand& x, int inputs, int outputs) {
  return {static_cast<int>(x.count()) / inputs, inputs, outputs};
}

}  // namespace

void Linear::host(HostMemory& memory) const {
  float* out = memory.staging(y);
  linear_forward(memory, shape_of(x, inputs, outputs), memory.load(x), memory.load(weight), out);
  memory.store(y, out);
}

void LinearDgrad::host(HostMemory& memory) const {
  float* out = memory.staging(dx);
  linear_dgrad(shape_of(dx, inputs, outputs), memory.load(dy), memory.load(weight), out);
  memory.store(dx, out);
}

void LinearWgrad::host(HostMemory& memory) const {
  linear_wgrad(memory, shape_of(x, inputs, outputs), memory.load(dy), memory.load(x), main_grad);
}

}  // namespace gatherfuzz
