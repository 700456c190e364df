// A linear map in MXFP8: both factors are planes of E4M3 elements whose blocks of 32 run along the contracted
// index, so each product reads the planes that its direction needs (numerics/mx.h). Products and sums are
// FP32 over the dequantized values, ascending, as in linear.h. x [tokens, inputs], weight [outputs, inputs],
// y [tokens, outputs]; all three sizes are multiples of 32.
#pragma once

#include "impl/runtime/op_type.h"

namespace gatherfuzz {

// y[t, o] = round(sum over i of x[t, i] * weight[o, i]); blocks along i.
struct MxLinear {
  static constexpr const char* kName = "mx_linear";
  Read<e4m3> x;
  Read<e8m0> x_scale;
  Weight<e4m3, Plane::rowwise> weight;
  Weight<e8m0, Plane::rowwise_scale> weight_scale;
  Write<real> y;
  int32_t inputs = 0;
  int32_t outputs = 0;

  void host(HostMemory& memory) const;
};

// dx[t, i] = round(sum over o of dy[t, o] * weight[o, i]); blocks along o: dy rowwise, the weight columnwise.
struct MxLinearDgrad {
  static constexpr const char* kName = "mx_linear_dgrad";
  Read<e4m3> dy;
  Read<e8m0> dy_scale;
  Weight<e4m3, Plane::columnwise> weight;
  Weight<e8m0, Plane::columnwise_scale> weight_scale;
  Write<real> dx;
  int32_t inputs = 0;
  int32_t outputs = 0;

  void host(HostMemory& memory) const;
};

// main_grad[o, i] += sum over t of dy[t, o] * x[t, i]; blocks along t: both columnwise. Reads no weight.
struct MxLinearWgrad {
  static constexpr const char* kName = "mx_linear_wgrad";
  Read<e4m3> dy;
  Read<e8m0> dy_scale;
  Read<e4m3> x;
  Read<e8m0> x_scale;
  Accumulate<real> main_grad;
  int32_t inputs = 0;
  int32_t outputs = 0;

  void host(HostMemory& memory) const;
};

}  // namespace gatherfuzz
