#include "impl/kernels/gradients.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gatherfuzz {

namespace {

// What a check leaves in its flag: zero while nothing was found, so that clean runs stay alike.
void check_taint(SymbolicMemory& memory, const Operand& values, const Operand& flag) {
  if (!memory.tainted(values)) return;
  memory.assign(flag, mix("found"_term, memory.digest(flag).term), kNoLabel, 1);
}

bool all_finite(const float* values, uint32_t n) {
  // A sum of zeros times the values is 0 unless one of them is not finite.
  float sum = 0.0f;
  for (uint32_t i = 0; i < n; ++i) sum += values[i] * 0.0f;
  return sum == 0.0f;
}

}  // namespace

void ScaleGradients::host(HostMemory& memory) const {
  const float* in = memory.load(values);
  float* out = memory.staging(values);
  for (uint32_t i = 0; i < values.count(); ++i) out[i] = in[i] * factor.value;
  memory.store(values, out);
}

void ScaleGradients::symbolic(SymbolicMemory& memory) const {
  const Term scale = scale_term(factor.value);
  transform_in_place(memory, values, [scale](Segment& s) {
    if (s.has_position()) s.term *= scale;
  });
}

void CheckGradients::host(HostMemory& memory) const {
  if (!all_finite(memory.load(values), values.count())) *memory.out<float>(flag) = 1.0f;
}

void CheckGradients::symbolic(SymbolicMemory& memory) const {
  check_taint(memory, values, flag);
}

void CopyReducedGradients::host(HostMemory& memory) const {
  const float* in = memory.load(source);
  float* out = memory.out<float>(target);
  for (uint32_t i = 0; i < target.count(); ++i) out[i] = in[i];
}

void CopyReducedGradients::symbolic(SymbolicMemory& memory) const {
  map_elements(memory, source, target, [](Term term) { return term; });
}

void UnscaleGradients::host(HostMemory& memory) const {
  float* values = memory.out<float>(grads);
  for (uint32_t i = 0; i < grads.count(); ++i) values[i] *= factor.value;
  if (!all_finite(values, grads.count())) *memory.out<float>(found_inf) = 1.0f;
}

void UnscaleGradients::symbolic(SymbolicMemory& memory) const {
  const Term scale = scale_term(factor.value);
  transform_in_place(memory, grads, [scale](Segment& s) {
    if (s.has_position()) s.term *= scale;
  });
  check_taint(memory, grads, found_inf);
}

void PoisonShard::host(HostMemory& memory) const {
  const float infinity = std::numeric_limits<float>::infinity();
  memory.store(element, &infinity);
}

void PoisonShard::symbolic(SymbolicMemory& memory) const {
  memory.assign(element, term_of(kName), kNoLabel, 1);
}

void AverageLoss::host(HostMemory& memory) const {
  const float* in = memory.in<float>(losses);
  float sum = 0.0f;
  for (uint32_t i = 0; i < losses.count(); ++i) sum += in[i];
  *memory.out<float>(out) =
      tokens.empty() ? sum * factor.value : sum / std::max(*memory.in<float>(tokens), 1.0f);
}

}  // namespace gatherfuzz
