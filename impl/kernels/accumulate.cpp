#include "impl/kernels/accumulate.h"

#include "impl/numerics/clones.h"

namespace gatherfuzz {

GATHERFUZZ_CLONES void accumulate(HostMemory& memory, const Operand& main_grad, const float* summand) {
  const uint32_t n = main_grad.count();
  if (main_grad.dtype == DType::f32) {
    float* grad = memory.out<float>(main_grad);
    for (uint32_t i = 0; i < n; ++i) grad[i] = grad[i] + summand[i];
    return;
  }
  bf16* grad = memory.out<bf16>(main_grad);
  for (uint32_t i = 0; i < n; ++i) grad[i] = to_bf16(to_float(grad[i]) + summand[i]);
}

}  // namespace gatherfuzz
