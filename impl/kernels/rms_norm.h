// Root-mean-square norm with a gain, and its gradients (Zhang and Sennrich 2019). The inverse root is kept in
// FP32 for backward.
#pragma once

#include "impl/runtime/op_type.h"

namespace gatherfuzz {

// r[t] = 1 / sqrt((sum over h of x^2) / hidden + 1e-5); y = round((x * r) * gain)
struct RmsNorm {
  static constexpr const char* kName = "rms_norm";
  Read<real> x;  // [tokens, hidden]
  Weight<real, Plane::whole> gain;
  Write<real> y;
  Write<float> inverse_rms;  // [tokens]

  void host(HostMemory& memory) const;
};

// With a = dy * gain and q[t] = sum over h of a * x: dx = round(r * a - ((x * ((r * r) * r)) * q) / hidden),
// and main_grad[h] += sum over t of dy * (x * r).
struct RmsNormBackward {
  static constexpr const char* kName = "rms_norm_backward";
  Read<real> dy;  // [tokens, hidden]
  Read<real> x;
  Read<float> inverse_rms;  // [tokens]
  Weight<real, Plane::whole> gain;
  Write<real> dx;
  Accumulate<real> main_grad;

  void host(HostMemory& memory) const;
};

}  // namespace gatherfuzz
