#include "impl/kernels/residual_add.h"

namespace gatherfuzz {

void ResidualAdd::host(HostMemory& memory) const {
  const float* a = memory.load(x);
  const float* b = memory.load(branch);
  float* out = memory.staging(sum);
  for (uint32_t i = 0; i < sum.count(); ++i) out[i] = a[i] + b[i];
  memory.store(sum, out);
}

}  // namespace gatherfuzz
