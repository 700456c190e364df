// MXFP8 quantization of an activation or of its gradient, both planes at once: the rowwise one is read by the
// product that follows (forward, dgrad), the columnwise one by wgrad.
#pragma once

#include "impl/numerics/mx.h"
#include "impl/runtime/op_type.h"

namespace gatherfuzz {

// `source` is bf16 [rows, cols], both multiples of 32; planes and scales as numerics/mx.h has them.
struct QuantizeActivation {
  static constexpr const char* kName = "quantize_activation";
  Read<real> source;
  Write<e4m3> rowwise;
  Write<e8m0> rowwise_scale;
  Write<e4m3> columnwise;
  Write<e8m0> columnwise_scale;
  int32_t cols = 0;
  ScaleRounding rounding = ScaleRounding::up;

  void host(HostMemory& memory) const;
};

}  // namespace gatherfuzz
