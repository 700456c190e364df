#include "impl/kernels/quantize_weight.h"

#include <utility>

namespace gatherfuzz {

Term quantized_term(Term value, Plane plane, ScaleRounding rounding) {
  if (value == kZeroTerm && (plane == Plane::rowwise || plane == Plane::columnwise)) return kZeroTerm;
  return mix(mix("quantize"_term, static_cast<Term>(plane) * 2 + static_cast<Term>(rounding)), value);
}

void QuantizeWeight::host(HostMemory& memory) const {
  const bf16* values = memory.in<bf16>(source);
  mx_quantize_rowwise(values, rows, cols, rounding, memory.out<e4m3>(rowwise),
                      memory.out<e8m0>(rowwise_scale));
  mx_quantize_columnwise(values, rows, cols, rounding, memory.out<e4m3>(columnwise),
                         memory.out<e8m0>(columnwise_scale));
}

// A source that is not one run of one value gives planes that equal nothing expected.
void assign_planes(SymbolicMemory& memory, const Operand& source, const Operand& rowwise,
                   const Operand& rowwise_scale, const Operand& columnwise, const Operand& columnwise_scale,
                   ScaleRounding rounding) {
  const Digest value = memory.digest(source);
  const std::pair<const Operand*, Plane> planes[] = {{&rowwise, Plane::rowwise},
                                                     {&rowwise_scale, Plane::rowwise_scale},
                                                     {&columnwise, Plane::columnwise},
                                                     {&columnwise_scale, Plane::columnwise_scale}};
  for (const auto& [operand, plane] : planes)
    memory.assign(*operand, quantized_term(value.term, plane, rounding), value.label, value.taint);
}

void QuantizeWeight::symbolic(SymbolicMemory& memory) const {
  assign_planes(memory, source, rowwise, rowwise_scale, columnwise, columnwise_scale, rounding);
}

}  // namespace gatherfuzz
