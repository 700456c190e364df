#include "impl/kernels/quantize_on_use.h"

#include "impl/kernels/quantize_weight.h"

namespace gatherfuzz {

void QuantizeOnUse::host(HostMemory& memory) const {
  const bf16* values = memory.in<bf16>(weight);
  const auto rows = weight.count() / static_cast<uint32_t>(cols);
  mx_quantize_rowwise(values, rows, cols, rounding, memory.out<e4m3>(rowwise),
                      memory.out<e8m0>(rowwise_scale));
  mx_quantize_columnwise(values, rows, cols, rounding, memory.out<e4m3>(columnwise),
                         memory.out<e8m0>(columnwise_scale));
}

void QuantizeOnUse::symbolic(SymbolicMemory& memory) const {
  assign_planes(memory, weight, rowwise, rowwise_scale, columnwise, columnwise_scale, rounding);
}

}  // namespace gatherfuzz
