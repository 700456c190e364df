#include "impl/kernels/adam.h"

#include <cmath>

#include "impl/numerics/clones.h"
#include "impl/runtime/symbolic/aligned_pieces.h"

namespace gatherfuzz {

AdamConstants adam_constants(double beta1, double beta2, double eps) {
  AdamConstants c;
  c.beta1 = static_cast<float>(beta1);
  c.beta2 = static_cast<float>(beta2);
  c.one_minus_beta1 = static_cast<float>(1.0 - beta1);
  c.one_minus_beta2 = static_cast<float>(1.0 - beta2);
  c.eps = static_cast<float>(eps);
  return c;
}

AdamStepScalars adam_step_scalars(double lr, double beta1, double beta2, int step) {
  AdamStepScalars s;
  s.lr.value = static_cast<float>(lr);
  s.bias_correction1 = static_cast<float>(1.0 - std::pow(beta1, step));
  s.bias_correction2 = static_cast<float>(1.0 - std::pow(beta2, step));
  return s;
}

Term adam_step_scalars_term(const AdamStepScalars& scalars) {
  Term all = term_of(AdamStepScalars::kName);
  for (const float s : {scalars.lr.value, scalars.bias_correction1, scalars.bias_correction2})
    all = mix(all, scalar_bits(s));
  return all;
}

Term adam_scalars_term(const AdamConstants& constants, Term step_scalars) {
  Term all = mix("adam"_term, step_scalars);
  for (const float s : {constants.beta1, constants.beta2, constants.eps}) all = mix(all, scalar_bits(s));
  return all;
}

AdamTerms adam_terms(const AdamTerms& before, Term grad, Term coefficient, Term scalars, float weight_decay) {
  if (before.main == kZeroTerm && before.exp_avg == kZeroTerm && before.exp_avg_sq == kZeroTerm &&
      grad == kZeroTerm)
    return before;
  Term all = scalars;
  for (const Term t : {before.main, before.exp_avg, before.exp_avg_sq, grad, coefficient}) all = mix(all, t);
  const Term main = weight_decay == 0.0f ? all : mix(all, scalar_bits(weight_decay));
  return {mix(main, 1), mix(all, 2), mix(all, 3)};
}

namespace {

GATHERFUZZ_CLONES void update(const AdamConstants& constants, float weight_decay, float lr,
                              float bias_correction1, float bias_correction2, float coefficient, uint32_t n,
                              const float* __restrict__ grad, float* __restrict__ p, float* __restrict__ m,
                              float* __restrict__ v) {
  const AdamConstants s = constants;
  const bool decays = weight_decay != 0.0f;  // decided once: compilers make two loops
  for (uint32_t i = 0; i < n; ++i) {
    const float g = grad[i] * coefficient;
    m[i] = s.beta1 * m[i] + s.one_minus_beta1 * g;
    v[i] = s.beta2 * v[i] + (s.one_minus_beta2 * g) * g;
    float direction = (m[i] / bias_correction1) / (std::sqrt(v[i] / bias_correction2) + s.eps);
    if (decays) direction += weight_decay * p[i];
    p[i] = p[i] - lr * direction;
  }
}

// An input whose elements belong to another position than the main param's is a value of its own.
Term at_position(const Segment& s, uint32_t offset) {
  return s.has_position() && s.offset != offset ? mix(mix("misaligned"_term, s.term), s.offset - offset)
                                                : s.term;
}

}  // namespace

void AdamStepScalars::host(HostMemory& memory) const {
  float* out = memory.out<float>(target);
  out[0] = lr.value;
  out[1] = bias_correction1;
  out[2] = bias_correction2;
}

void AdamStepScalars::symbolic(SymbolicMemory& memory) const {
  memory.assign(target, adam_step_scalars_term(*this));
}

void Adam::host(HostMemory& memory) const {
  const float* step = memory.in<float>(step_scalars);
  update(constants, weight_decay.value, step[0], step[1], step[2], *memory.in<float>(coefficient),
         main.count(), memory.in<float>(grads), memory.out<float>(main), memory.out<float>(exp_avg),
         memory.out<float>(exp_avg_sq));
}

void Adam::symbolic(SymbolicMemory& memory) const {
  enum : std::size_t { kMain, kExpAvg, kExpAvgSq, kGrads, kOperands };
  static thread_local AlignedPieces all(kOperands);
  const Operand* const operands[kOperands] = {&main, &exp_avg, &exp_avg_sq, &grads};
  for (std::size_t i = 0; i < kOperands; ++i) all.load(i, memory, *operands[i]);
  all.align();
  const Digest c = memory.digest(coefficient);
  const Digest step = memory.digest(step_scalars);
  const Term scalars_term = adam_scalars_term(constants, step.term);
  for (std::size_t piece = 0; piece < all.size(); ++piece) {
    Segment &p = all.of(kMain)[piece], &m = all.of(kExpAvg)[piece], &v = all.of(kExpAvgSq)[piece];
    const Segment& g = all.of(kGrads)[piece];
    const uint32_t offset = p.has_position() ? p.offset : g.offset;
    const AdamTerms after = adam_terms({p.term, at_position(m, offset), at_position(v, offset)},
                                       at_position(g, offset), c.term, scalars_term, weight_decay.value);
    const auto taint = static_cast<uint8_t>(p.taint | m.taint | v.taint | g.taint | c.taint | step.taint);
    p = {after.main, main.begin + p.begin, offset, kNoLabel, sizeof(float), taint};
    m = {after.exp_avg, exp_avg.begin + m.begin, offset, kNoLabel, sizeof(float), taint};
    v = {after.exp_avg_sq, exp_avg_sq.begin + v.begin, offset, kNoLabel, sizeof(float), taint};
  }
  for (const std::size_t i : {kMain, kExpAvg, kExpAvgSq})
    memory.assign_pieces(operands[i]->buffer, all.of(i), operands[i]->end());
}

}  // namespace gatherfuzz
