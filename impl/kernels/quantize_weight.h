// Post-param-sync of one MXFP8 weight: the gathered bf16 values become rowwise and columnwise data and
// scales.
#pragma once

#include "impl/numerics/mx.h"
#include "impl/runtime/op_type.h"

namespace gatherfuzz {

// The term of a plane of quantize(value): plane is rowwise, rowwise_scale, columnwise or columnwise_scale.
// Data of zeros are zeros; scales of zeros are a value like any other.
Term quantized_term(Term value, Plane plane, ScaleRounding rounding);

// Writes the planes of quantize(source) as terms.
void assign_planes(SymbolicMemory& memory, const Operand& source, const Operand& rowwise,
                   const Operand& rowwise_scale, const Operand& columnwise, const Operand& columnwise_scale,
                   ScaleRounding rounding);

// source [rows, cols] bf16; data planes [rows, cols]; scales [rows, cols/32] and [rows/32, cols].
struct QuantizeWeight {
  static constexpr const char* kName = "quantize";
  Read<bf16, Content::gathered> source;
  Write<e4m3, Content::weights, Plane::rowwise> rowwise;
  Write<e8m0, Content::weights, Plane::rowwise_scale> rowwise_scale;
  Write<e4m3, Content::weights, Plane::columnwise> columnwise;
  Write<e8m0, Content::weights, Plane::columnwise_scale> columnwise_scale;
  int32_t rows = 0;
  int32_t cols = 0;
  ScaleRounding rounding = ScaleRounding::up;

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

}  // namespace gatherfuzz
