#include "impl/kernels/quantize_weight.h"

namespace gatherfuzz {

Term quantized_term(Term value, Plane plane, ScaleRounding rounding) {
  if (value == kZeroTerm && (plane == Plane::rowwise || plane == Plane::columnwise)) return kZeroTerm;
  return mix(mix(term_of("quantize"), static_cast<Term>(plane) * 2 + static_cast<Term>(rounding)), value);
}

void QuantizeWeight::host(HostMemory& memory) const {
  const bf16* values = memory.in<bf16>(source);
  mx_quantize_rowwise(values, rows, cols, rounding, memory.out<e4m3>(rowwise),
                      memory.out<e8m0>(rowwise_scale));
  mx_quantize_columnwise(values, rows, cols, rounding, memory.out<e4m3>(columnwise),
                         memory.out<e8m0>(columnwise_scale));
}

// A source that is not one run of one value gives planes that equal nothing expected.
void QuantizeWeight::symbolic(SymbolicMemory& memory) const {
  const Digest value = memory.digest(source);
  memory.assign(rowwise, quantized_term(value.term, Plane::rowwise, rounding), value.label, value.taint);
  memory.assign(rowwise_scale, quantized_term(value.term, Plane::rowwise_scale, rounding), value.label,
                value.taint);
  memory.assign(columnwise, quantized_term(value.term, Plane::columnwise, rounding), value.label,
                value.taint);
  memory.assign(columnwise_scale, quantized_term(value.term, Plane::columnwise_scale, rounding), value.label,
                value.taint);
}

}  // namespace gatherfuzz
