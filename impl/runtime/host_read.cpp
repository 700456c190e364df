#include "impl/runtime/host_read.h"

#include <cmath>

namespace gatherfuzz {

void HostRead::host(HostMemory& memory) const {
  result->value = static_cast<double>(*memory.in<float>(source));
  result->nonfinite = !std::isfinite(result->value);
  result->done = true;
}

void HostRead::symbolic(SymbolicMemory& memory) const {
  result->nonfinite = memory.tainted(source);
  result->done = true;
}

}  // namespace gatherfuzz
