#include "impl/kernels/quantize_activation.h"

namespace gatherfuzz {

void QuantizeActivation::host(HostMemory& memory) const {
  const bf16* values = memory.in<bf16>(source);
  const auto rows = source.count() / static_cast<uint32_t>(cols);
  mx_quantize_rowwise(values, rows, cols, rounding, memory.out<e4m3>(rowwise),
                      memory.out<e8m0>(rowwise_scale));
  mx_quantize_columnwise(values, rows, cols, rounding, memory.out<e4m3>(columnwise),
                         memory.out<e8m0>(columnwise_scale));
}

}  // namespace gatherfuzz
