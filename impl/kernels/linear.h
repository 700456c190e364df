// A linear map by a weight [outputs, inputs] held whole (bf16 or FP32), row-major, with its two gradients.
// Sums are FP32, in ascending index of what is contracted; activations are rounded once, to the operand's
// dtype.
#pragma once

#include "impl/runtime/op_type.h"

namespace gatherfuzz {

// y[t, o] = round(sum over i of x[t, i] * weight[o, i])
struct Linear {
  static constexpr const char* kName = "linear";
  Read<real> x;  // [tokens, inputs]
  Weight<real, Plane::whole> weight;
  Write<real> y;  // [tokens, outputs]
  int32_t inputs = 0;
  int32_t outputs = 0;

  void host(HostMemory& memory) const;
};

// dx[t, i] = round(sum over o of dy[t, o] * weight[o, i])
struct LinearDgrad {
  static constexpr const char* kName = "linear_dgrad";
  Read<real> dy;  // [tokens, outputs]
  Weight<real, Plane::whole> weight;
  Write<real> dx;  // [tokens, inputs]
  int32_t inputs = 0;
  int32_t outputs = 0;

  void host(HostMemory& memory) const;
};

// main_grad[o, i] += sum over t of dy[t, o] * x[t, i]
struct LinearWgrad {
  static constexpr const char* kName = "linear_wgrad";
  Read<real> dy;  // [tokens, outputs]
  Read<real> x;   // [tokens, inputs]
  Accumulate<real> main_grad;
  int32_t inputs = 0;
  int32_t outputs = 0;

  void host(HostMemory& memory) const;
};

}  // namespace gatherfuzz
