// The three products of a linear map on FP32 values, which the plain and the MXFP8 linear share. All matrices
// are dense and row-major: x [tokens, inputs], weight [outputs, inputs], y and dy [tokens, outputs].
#pragma once

#include "impl/runtime/host/memory.h"

namespace gatherfuzz {

struct LinearShape {
  int tokens = 0;
  int inputs = 0;
  int outputs = 0;
};

// y = x * weight^T; the transposed weight lies in scratch.
void linear_forward(HostMemory& memory, const LinearShape& shape, const float* x, const float* weight,
                    float* y);
// dx = dy * weight
void linear_dgrad(const LinearShape& shape, const float* dy, const float* weight, float* dx);
// main_grad += dy^T * x; the summand lies in scratch.
void linear_wgrad(HostMemory& memory, const LinearShape& shape, const float* dy, const float* x,
                  const Operand& main_grad);

}  // namespace gatherfuzz
