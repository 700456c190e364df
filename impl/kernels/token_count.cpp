#include "impl/kernels/token_count.h"

#include <algorithm>

#include "impl/kernels/dataset.h"

namespace gatherfuzz {

Term count_term(Term targets) {
  return mix("count_tokens"_term, targets);
}

Term per_token_factor(Term tokens) {
  return mix("divide_by_tokens"_term, tokens) | 1;
}

void CountTokens::host(HostMemory& memory) const {
  const int32_t* target = memory.in<int32_t>(targets);
  const auto masked = std::count(target, target + targets.count(), kMaskedTarget);
  *memory.out<float>(total) += static_cast<float>(targets.count() - static_cast<uint32_t>(masked));
}

void CountTokens::symbolic(SymbolicMemory& memory) const {
  memory.assign(total, memory.digest(total).term + count_term(memory.digest(targets).term));
}

void DivideByTokens::host(HostMemory& memory) const {
  const float factor = 1.0f / std::max(*memory.in<float>(tokens), 1.0f);
  const float* in = memory.load(values);
  float* out = memory.staging(values);
  for (uint32_t i = 0; i < values.count(); ++i) out[i] = in[i] * factor;
  memory.store(values, out);
}

void DivideByTokens::symbolic(SymbolicMemory& memory) const {
  const Term factor = per_token_factor(memory.digest(tokens).term);
  transform_in_place(memory, values, [factor](Segment& s) {
    if (s.has_position()) s.term *= factor;
  });
}

}  // namespace gatherfuzz
