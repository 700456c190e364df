#include "impl/kernels/adam.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "impl/numerics/clones.h"

namespace gatherfuzz {

AdamScalars adam_scalars(double lr, double beta1, double beta2, double eps, int step) {
  AdamScalars s;
  s.lr = static_cast<float>(lr);
  s.beta1 = static_cast<float>(beta1);
  s.beta2 = static_cast<float>(beta2);
  s.one_minus_beta1 = static_cast<float>(1.0 - beta1);
  s.one_minus_beta2 = static_cast<float>(1.0 - beta2);
  s.eps = static_cast<float>(eps);
  s.bias_correction1 = static_cast<float>(1.0 - std::pow(beta1, step));
  s.bias_correction2 = static_cast<float>(1.0 - std::pow(beta2, step));
  return s;
}

Term adam_scalars_term(const AdamScalars& scalars) {
  Term all = "adam"_term;
  for (const float s : {scalars.lr, scalars.beta1, scalars.beta2, scalars.eps, scalars.bias_correction1,
                        scalars.bias_correction2})
    all = mix(all, scalar_bits(s));
  return all;
}

AdamTerms adam_terms(const AdamTerms& before, Term grad, Term coefficient, Term scalars) {
  if (before.main == kZeroTerm && before.exp_avg == kZeroTerm && before.exp_avg_sq == kZeroTerm &&
      grad == kZeroTerm)
    return before;
  Term all = scalars;
  for (const Term t : {before.main, before.exp_avg, before.exp_avg_sq, grad, coefficient}) all = mix(all, t);
  return {mix(all, 1), mix(all, 2), mix(all, 3)};
}

namespace {

GATHERFUZZ_CLONES void update(const AdamScalars& scalars, float coefficient, uint32_t n,
                              const float* __restrict__ grad, float* __restrict__ p, float* __restrict__ m,
                              float* __restrict__ v) {
  const AdamScalars s = scalars;
  for (uint32_t i = 0; i < n; ++i) {
    const float g = grad[i] * coefficient;
    m[i] = s.beta1 * m[i] + s.one_minus_beta1 * g;
    v[i] = s.beta2 * v[i] + (s.one_minus_beta2 * g) * g;
    p[i] = p[i] - s.lr * ((m[i] / s.bias_correction1) / (std::sqrt(v[i] / s.bias_correction2) + s.eps));
  }
}

// Walks several operands of equal layout together; each piece is cut to the shortest.
struct Cursor {
  std::vector<std::pair<Segment, uint32_t>> pieces;  // segment, end; positions relative to the operand
  std::size_t at = 0;

  void load(const SymbolicMemory& memory, const Operand& operand) {
    pieces.clear();
    at = 0;
    memory.pieces(operand, [&](const Segment& piece, uint32_t end) {
      pieces.emplace_back(piece, end - operand.begin);
      pieces.back().first.begin -= operand.begin;
    });
  }
  // The piece at `position`, which must not lie before the last one asked for.
  Segment cut(uint32_t position) {
    while (pieces[at].second <= position) ++at;
    Segment s = pieces[at].first;
    if (s.has_position()) s.offset += position - s.begin;
    return s;
  }
  uint32_t end() const { return pieces[at].second; }
};

// An input whose elements belong to another position than the main param's is a value of its own.
Term at_position(const Segment& s, uint32_t offset) {
  return s.has_position() && s.offset != offset ? mix(mix("misaligned"_term, s.term), s.offset - offset)
                                                : s.term;
}

}  // namespace

void Adam::host(HostMemory& memory) const {
  update(scalars, *memory.in<float>(coefficient), main.count(), memory.in<float>(grads),
         memory.out<float>(main), memory.out<float>(exp_avg), memory.out<float>(exp_avg_sq));
}

void Adam::symbolic(SymbolicMemory& memory) const {
  static thread_local Cursor p, m, v, g;
  p.load(memory, main);
  m.load(memory, exp_avg);
  v.load(memory, exp_avg_sq);
  g.load(memory, grads);
  const Digest c = memory.digest(coefficient);
  const Term scalars_term = adam_scalars_term(scalars);
  for (uint32_t at = 0; at < main.bytes;) {
    const Segment ps = p.cut(at), ms = m.cut(at), vs = v.cut(at), gs = g.cut(at);
    const uint32_t end = std::min({p.end(), m.end(), v.end(), g.end()});
    const uint32_t offset = ps.has_position() ? ps.offset : gs.offset;
    const AdamTerms after = adam_terms({ps.term, at_position(ms, offset), at_position(vs, offset)},
                                       at_position(gs, offset), c.term, scalars_term);
    Segment out;
    out.offset = offset;
    out.element = sizeof(float);
    out.taint = static_cast<uint8_t>(ps.taint | ms.taint | vs.taint | gs.taint | c.taint);
    const std::pair<const Operand*, Term> results[] = {
        {&main, after.main}, {&exp_avg, after.exp_avg}, {&exp_avg_sq, after.exp_avg_sq}};
    for (const auto& [operand, term] : results) {
      out.term = term;
      out.begin = operand->begin + at;
      memory.assign_piece(operand->buffer, out, operand->begin + end);
    }
    at = end;
  }
}

}  // namespace gatherfuzz
