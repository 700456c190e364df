#include "impl/kernels/fill.h"

#include <cmath>
#include <cstring>

namespace gatherfuzz {

namespace {
void zero(HostMemory& memory, const Operand& operand) {
  std::memset(memory.data(operand), 0, operand.bytes);
}
}  // namespace

void ZeroGradBuffer::host(HostMemory& memory) const {
  zero(memory, buffer);
}
void ZeroGradBuffer::symbolic(SymbolicMemory& memory) const {
  memory.assign(buffer, kZeroTerm);
}

void ZeroParamRange::host(HostMemory& memory) const {
  zero(memory, range);
}
void ZeroParamRange::symbolic(SymbolicMemory& memory) const {
  memory.assign(range, kZeroTerm);
}

void ZeroScalars::host(HostMemory& memory) const {
  zero(memory, scalars);
}
void ZeroScalars::symbolic(SymbolicMemory& memory) const {
  memory.assign(scalars, kZeroTerm);
}

void SetScalar::host(HostMemory& memory) const {
  *memory.out<float>(target) = value;
}
void SetScalar::symbolic(SymbolicMemory& memory) const {
  const Term term = value == 0.0f ? kZeroTerm : mix(term_of(kName), scalar_bits(value));
  memory.assign(target, term, kNoLabel, std::isfinite(value) ? 0 : 1);
}

}  // namespace gatherfuzz
