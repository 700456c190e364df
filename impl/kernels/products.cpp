#include "impl/kernels/products.h"

#include "impl/kernels/accumulate.h"
#include "impl/kernels/gemm.h"

namespace gatherfuzz {

namespace {
std::size_t area(int rows, int cols) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
}
}  // namespace

void linear_forward(HostMemory& memory, const LinearShape& shape, const float* x, const float* weight,
                    float* y) {
  float* transposed = memory.scratch(area(shape.inputs, shape.outputs));
  transpose(weight, shape.inputs, shape.outputs, shape.inputs, transposed);
  multiply({{x, shape.inputs, 1},
            transposed,
            shape.outputs,
            y,
            shape.outputs,
            shape.tokens,
            shape.outputs,
            shape.inputs});
}

void linear_dgrad(const LinearShape& shape, const float* dy, const float* weight, float* dx) {
  multiply({{dy, shape.outputs, 1},
            weight,
            shape.inputs,
            dx,
            shape.inputs,
            shape.tokens,
            shape.inputs,
            shape.outputs});
}

void linear_wgrad(HostMemory& memory, const LinearShape& shape, const float* dy, const float* x,
                  const Operand& main_grad) {
  float* summand = memory.scratch(area(shape.outputs, shape.inputs));
  multiply({{dy, 1, shape.outputs},
            x,
            shape.inputs,
            summand,
            shape.inputs,
            shape.outputs,
            shape.inputs,
            shape.tokens});
  accumulate(memory, main_grad, summand);
}

}  // namespace gatherfuzz
