// Adam against the reference's loop, bit for bit, and as terms.
#include "impl/kernels/adam.h"

#include <gtest/gtest.h>

#include <cmath>

#include "impl/kernels/kernel_bench_for_tests.h"
#include "reference/optimizer.h"

namespace gatherfuzz {
namespace {

TEST(Adam, BitsAreTheReferences) {
  KernelBench bench(11);
  constexpr uint32_t kCount = 1000;
  std::size_t compared = 0;
  for (const auto& [beta2, decay] :
       {std::pair{0.95, 0.0f}, {0.999, 0.0f}, {0.0, 0.0f}, {0.95, 0.1f}, {0.999, 1.0f}}) {
    const View<float> main = bench.random_floats(kCount), grads = bench.random_floats(kCount, 1e-3f);
    const View<float> moments = bench.view<float>(2 * kCount), coefficient = bench.view<float>(1);
    const View<float> step_scalars = bench.view<float>(kAdamStepScalars);
    HostMemory& memory = bench.memory();
    std::fill_n(memory.out<float>(moments), 2 * kCount, 0.0f);
    std::vector<float> expected_main = bench.floats(main);
    std::vector<float> exp_avg(kCount, 0.0f), exp_avg_sq(kCount, 0.0f);
    for (int step = 1; step <= 10; ++step) {
      const float c = step % 2 == 0 ? 1.0f : 0.37f;
      *memory.out<float>(coefficient) = c;
      for (uint32_t i = 0; i < kCount; ++i) memory.out<float>(grads)[i] *= 0.9f;
      memory.out<float>(grads)[7] = 0.0f;
      AdamStepScalars of_step = adam_step_scalars(0.01, 0.9, beta2, step);
      of_step.target = step_scalars;
      of_step.host(memory);
      Adam{main,
           moments.slice(0, kCount),
           moments.slice(kCount, kCount),
           grads,
           coefficient,
           step_scalars,
           adam_constants(0.9, beta2, 1e-8),
           Coefficient{decay}}
          .host(memory);
      reference::adam({0.9, beta2, 1e-8f, decay}, {expected_main, exp_avg, exp_avg_sq}, bench.floats(grads),
                      c, 0.01f, step);
      ASSERT_EQ(differing_bits(bench.floats(main), expected_main), 0u) << step;
      ASSERT_EQ(differing_bits(bench.floats(moments.slice(0, kCount)), exp_avg), 0u);
      ASSERT_EQ(differing_bits(bench.floats(moments.slice(kCount, kCount)), exp_avg_sq), 0u);
      compared += 3 * kCount;
    }
    EXPECT_NE(expected_main[0], expected_main[1]);
  }
  EXPECT_EQ(compared, 5u * 10 * 3 * kCount);
}

// A decay of zero changes no bit: of zeros and infinities neither.
TEST(Adam, WithoutDecayItIsPlainAdam) {
  KernelBench bench(12);
  const std::vector<float> mains = {0.0f, -0.0f, 1.0f, -1.0f, 1e-45f, -1e-45f, 3e38f, -3e38f, HUGE_VALF};
  const std::vector<float> grads = {0.0f, -0.0f, 0.5f, -0.5f, 1e-45f, -1e-45f, 1e20f};
  std::size_t compared = 0;
  for (const float p : mains) {
    for (const float g : grads) {
      const View<float> main = bench.view<float>(1), grad = bench.view<float>(1), one = bench.view<float>(1);
      const View<float> m = bench.view<float>(1), v = bench.view<float>(1);
      HostMemory& memory = bench.memory();
      *memory.out<float>(main) = p;
      *memory.out<float>(grad) = g;
      *memory.out<float>(one) = 1.0f;
      *memory.out<float>(m) = *memory.out<float>(v) = 0.0f;
      AdamStepScalars of_step = adam_step_scalars(0.01, 0.9, 0.95, 1);
      const View<float> step_scalars = bench.view<float>(kAdamStepScalars);
      of_step.target = step_scalars;
      of_step.host(memory);
      const AdamConstants c = adam_constants(0.9, 0.95, 1e-8);
      const float exp_avg = c.beta1 * 0.0f + c.one_minus_beta1 * g;
      const float exp_avg_sq = c.beta2 * 0.0f + (c.one_minus_beta2 * g) * g;
      const float expected =
          p - of_step.lr.value * ((exp_avg / of_step.bias_correction1) /
                                  (std::sqrt(exp_avg_sq / of_step.bias_correction2) + c.eps));
      Adam{main, m, v, grad, one, step_scalars, c}.host(memory);
      EXPECT_EQ(differing_bits(bench.floats(main), {expected}), 0u) << p << " " << g;
      ++compared;
    }
  }
  EXPECT_EQ(compared, mains.size() * grads.size());
}

constexpr uint32_t kElements = 64;
constexpr float kDecay = 0.1f;

// Main params, moments and gradients of two params with padding after each.
class Terms {
 public:
  Terms() {
    const auto make = [this](uint32_t n) { return make_view<float>(memory.allocate(n * 4, true), 0, n); };
    main = make(kElements);
    exp_avg = make(kElements);
    exp_avg_sq = make(kElements);
    grads = make(kElements);
    coefficient = make(1);
    step_scalars = make(kAdamStepScalars);
    memory.assign(coefficient, term_of("coefficient"));
    for (const auto& [view, name] : {std::pair{&main, "main"}, std::pair{&grads, "grad"}}) {
      memory.assign(view->slice(0, 20), mix(term_of(name), 0));
      memory.assign(view->slice(32, 24), mix(term_of(name), 1));
    }
  }
  void step(uint32_t first, uint32_t n, int step) {
    AdamStepScalars of_step = adam_step_scalars(0.01, 0.9, 0.95, step);
    of_step.target = step_scalars;
    of_step.symbolic(memory);
    Adam{main.slice(first, n),
         exp_avg.slice(first, n),
         exp_avg_sq.slice(first, n),
         grads.slice(first, n),
         coefficient,
         step_scalars,
         constants(),
         Coefficient{kDecay}}
        .symbolic(memory);
  }
  static AdamConstants constants() { return adam_constants(0.9, 0.95, 1e-8); }
  static Term scalars_term(int step, double lr = 0.01) {
    return adam_scalars_term(constants(), adam_step_scalars_term(adam_step_scalars(lr, 0.9, 0.95, step)));
  }

  SymbolicMemory memory;
  View<float> main, exp_avg, exp_avg_sq, grads, coefficient, step_scalars;
};

TEST(Adam, TermsOfEachParamAreWhatAdamTermsSays) {
  Terms t;
  AdamTerms expected[2] = {{mix(term_of("main"), 0)}, {mix(term_of("main"), 1)}};
  for (int step = 1; step <= 3; ++step) {
    t.step(0, kElements, step);
    for (Term p = 0; p < 2; ++p) {
      expected[p] = adam_terms(expected[p], mix(term_of("grad"), p), term_of("coefficient"),
                               Terms::scalars_term(step), kDecay);
      const uint32_t first = p == 0 ? 0 : 32, n = p == 0 ? 20 : 24;
      EXPECT_EQ(t.memory.digest(t.main.slice(first, n)).term, expected[p].main);
      EXPECT_EQ(t.memory.digest(t.exp_avg.slice(first, n)).term, expected[p].exp_avg);
      EXPECT_EQ(t.memory.digest(t.exp_avg_sq.slice(first, n)).term, expected[p].exp_avg_sq);
    }
  }
}

TEST(Adam, PaddingStaysZero) {
  Terms t;
  t.step(0, kElements, 1);
  for (const View<float>& view : {t.main, t.exp_avg, t.exp_avg_sq}) {
    EXPECT_EQ(t.memory.digest(view.slice(20, 12)).term, kZeroTerm);
    EXPECT_EQ(t.memory.digest(view.slice(56, 8)).term, kZeroTerm);
    EXPECT_EQ(t.memory.segments(view.buffer).size(), 4u);
  }
}

// Shards that cut params give the same values as the whole, once they lie side by side.
TEST(Adam, TermsOfAnyPartitionAreTheSame) {
  Terms whole;
  whole.step(0, kElements, 1);
  for (uint32_t cut = 1; cut < kElements; ++cut) {
    Terms parts;
    parts.step(0, cut, 1);
    parts.step(cut, kElements - cut, 1);
    for (View<float> Terms::*view : {&Terms::main, &Terms::exp_avg, &Terms::exp_avg_sq})
      ASSERT_EQ(parts.memory.digest(parts.*view).term, whole.memory.digest(whole.*view).term) << cut;
  }
}

// Everything that a step depends on changes its terms.
TEST(Adam, EachInputMatters) {
  const AdamTerms before{term_of("main"), term_of("m"), term_of("v")};
  const Term scalars = Terms::scalars_term(2);
  const Term base = adam_terms(before, 5, 7, scalars, 0.0f).main;
  EXPECT_NE(adam_terms({1, before.exp_avg, before.exp_avg_sq}, 5, 7, scalars, 0.0f).main, base);
  EXPECT_NE(adam_terms({before.main, 1, before.exp_avg_sq}, 5, 7, scalars, 0.0f).main, base);
  EXPECT_NE(adam_terms({before.main, before.exp_avg, 1}, 5, 7, scalars, 0.0f).main, base);
  EXPECT_NE(adam_terms(before, 6, 7, scalars, 0.0f).main, base);
  EXPECT_NE(adam_terms(before, 5, 8, scalars, 0.0f).main, base);
  EXPECT_NE(adam_terms(before, 5, 7, Terms::scalars_term(3), 0.0f).main, base) << "another step number";
  EXPECT_NE(adam_terms(before, 5, 7, Terms::scalars_term(2, 0.02), 0.0f).main, base) << "another LR";
  EXPECT_NE(adam_terms(before, 5, 7, scalars, kDecay).main, base) << "a decay";
  EXPECT_EQ(adam_terms(before, 5, 7, scalars, kDecay).exp_avg,
            adam_terms(before, 5, 7, scalars, 0.0f).exp_avg)
      << "decoupled: the moments know nothing of it";
  EXPECT_EQ(adam_terms(before, 5, 7, Terms::scalars_term(2), 0.0f).main, base);
}

// A gradient that belongs to another element is not the same value, and taint spreads.
TEST(Adam, MisalignedAndTaintedGradientsShow) {
  Terms good, shifted;
  good.step(0, kElements, 1);
  Segment piece;
  piece.term = mix(term_of("grad"), 0);
  piece.offset = 4;
  piece.element = 4;
  shifted.memory.assign_piece(shifted.grads.buffer, piece, 80);
  shifted.step(0, kElements, 1);
  EXPECT_NE(shifted.memory.digest(shifted.main.slice(0, 20)).term,
            good.memory.digest(good.main.slice(0, 20)).term);
  EXPECT_EQ(shifted.memory.digest(shifted.main.slice(32, 24)).term,
            good.memory.digest(good.main.slice(32, 24)).term);

  Terms tainted;
  tainted.memory.assign(tainted.grads.slice(40, 1), term_of("bad"), kNoLabel, 1);
  tainted.step(0, kElements, 1);
  EXPECT_TRUE(tainted.memory.tainted(tainted.main.slice(40, 1)));
  EXPECT_FALSE(tainted.memory.tainted(tainted.main.slice(0, 40)));
  tainted.memory.assign(tainted.coefficient, term_of("c"), kNoLabel, 1);
  tainted.step(0, kElements, 2);
  EXPECT_TRUE(tainted.memory.tainted(tainted.main.slice(0, 20)));
}

}  // namespace
}  // namespace gatherfuzz
