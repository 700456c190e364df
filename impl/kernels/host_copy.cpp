#include "impl/kernels/host_copy.h"

#include <cstring>

namespace gatherfuzz {

void CopyToHost::host(HostMemory& memory) const {
  std::memcpy(target, memory.data(source), source.bytes);
}

void CopyToHost::symbolic(SymbolicMemory&) const {}

void CopyFromHost::host(HostMemory& memory) const {
  std::memcpy(memory.data(target), source, target.bytes);
}

void CopyFromHost::symbolic(SymbolicMemory& memory) const {
  memory.assign(target, "from_host"_term);
}

}  // namespace gatherfuzz
