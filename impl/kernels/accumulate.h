// What every weight gradient ends with: main_grad = round(main_grad + summand), rounded to main_grad's dtype.
#pragma once

#include "impl/runtime/host/memory.h"

namespace gatherfuzz {

// `summand` has one FP32 value an element of `main_grad` (FP32 or bf16).
void accumulate(HostMemory& memory, const Operand& main_grad, const float* summand);

}  // namespace gatherfuzz
