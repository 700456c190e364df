// MXFP8 quantization of a weight that is stored whole, where a layer uses it (no `fp8_param_gather`). What it
// leaves is as much a weight as what it read: forward and dgrad read the planes under the same rules.
#pragma once

#include "impl/numerics/mx.h"
#include "impl/runtime/op_type.h"

namespace gatherfuzz {

// `weight` is bf16 [rows, cols], both multiples of 32; planes and scales as numerics/mx.h has them.
struct QuantizeOnUse {
  static constexpr const char* kName = "quantize_on_use";
  Weight<real, Plane::whole> weight;
  Write<e4m3, Content::weights, Plane::rowwise> rowwise;
  Write<e8m0, Content::weights, Plane::rowwise_scale> rowwise_scale;
  Write<e4m3, Content::weights, Plane::columnwise> columnwise;
  Write<e8m0, Content::weights, Plane::columnwise_scale> columnwise_scale;
  int32_t cols = 0;
  ScaleRounding rounding = ScaleRounding::up;

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

}  // namespace gatherfuzz
