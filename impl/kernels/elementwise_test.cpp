// Embedding, norm, SwiGLU, residual and cross entropy against the reference's formulas, bit for bit.
#include <gtest/gtest.h>

#include <cmath>

#include "impl/kernels/cross_entropy.h"
#include "impl/kernels/embedding.h"
#include "impl/kernels/kernel_bench_for_tests.h"
#include "impl/kernels/residual_add.h"
#include "impl/kernels/rms_norm.h"
#include "impl/kernels/swiglu.h"
#include "reference/ops.h"

namespace gatherfuzz {
namespace {

using Values = std::vector<float>;

Values sum_of(const Values& a, const Values& b, DType dtype) {
  Values sum(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) sum[i] = a[i] + b[i];
  return rounded_to(sum, dtype);
}

// Activations' dtype; main_grad has the other one, so that all four pairs of dtypes are met.
class Elementwise : public testing::TestWithParam<DType> {
 protected:
  DType dtype() const { return GetParam(); }
  DType grad_dtype() const { return dtype() == DType::bf16 ? DType::f32 : DType::bf16; }
  void expect_equal(const Operand& found, const Values& expected) {
    ASSERT_GT(expected.size(), 0u);
    EXPECT_EQ(differing_bits(bench.floats(found), expected), 0u) << "of " << expected.size();
  }
  KernelBench bench{21};
};

INSTANTIATE_TEST_SUITE_P(Dtypes, Elementwise, testing::Values(DType::bf16, DType::f32),
                         [](const auto& test) { return name_of(test.param); });

TEST_P(Elementwise, Embedding) {
  const View<int32_t> tokens = bench.random_tokens(13, 5);
  const View<real> table = bench.random(5 * 7, dtype());
  const Embedding op{tokens, table, bench.view(13 * 7, dtype()), 7};
  op.host(bench.memory());
  expect_equal(op.x, reference::embedding(bench.floats(table), bench.tokens(tokens), 7));
}

TEST_P(Elementwise, EmbeddingOutsideTheTableIsNaN) {
  const View<int32_t> tokens = bench.random_tokens(3, 3);
  bench.memory().out<int32_t>(tokens)[0] = -1;
  bench.memory().out<int32_t>(tokens)[1] = 5;
  const View<real> x = bench.view(3 * 7, dtype());
  Embedding{tokens, bench.random(5 * 7, dtype()), x, 7}.host(bench.memory());
  const Values found = bench.floats(x);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(std::isnan(found[i]), i < 14) << i;
  const EmbeddingBackward back{tokens, x, bench.random(5 * 7, grad_dtype()), 7};
  const Values before = bench.floats(back.main_grad);
  back.host(bench.memory());
  const Values after = bench.floats(back.main_grad);
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_EQ(after[i] != before[i], i / 7 == 2) << i;
}

TEST_P(Elementwise, EmbeddingBackward) {
  const View<int32_t> tokens = bench.random_tokens(23, 6);
  const View<real> dx = bench.random(23 * 5, dtype());
  const EmbeddingBackward op{tokens, dx, bench.random(6 * 5, grad_dtype()), 5};
  const Values before = bench.floats(op.main_grad);
  op.host(bench.memory());
  const Values summand = reference::embedding_backward(bench.floats(dx), bench.tokens(tokens), 6, 5);
  expect_equal(op.main_grad, sum_of(before, summand, grad_dtype()));
}

TEST_P(Elementwise, RmsNormAndBackward) {
  for (const uint32_t tokens : {1u, 8u, 19u}) {
    const uint32_t hidden = 22;
    const View<real> x = bench.random(tokens * hidden, dtype());
    const View<real> gain = bench.random(hidden, dtype());
    const View<float> inverse_rms = bench.view<float>(tokens);
    const RmsNorm op{x, gain, bench.view(tokens * hidden, dtype()), inverse_rms};
    op.host(bench.memory());
    const auto forward = reference::rms_norm(bench.floats(x), bench.floats(gain));
    expect_equal(op.y, rounded_to(forward.y, dtype()));
    expect_equal(inverse_rms, forward.inverse_rms);

    const View<real> dy = bench.random(tokens * hidden, dtype());
    const RmsNormBackward back{
        dy, x, inverse_rms, gain, bench.view(tokens * hidden, dtype()), bench.random(hidden, grad_dtype())};
    const Values before = bench.floats(back.main_grad);
    back.host(bench.memory());
    const auto expected = reference::rms_norm_backward(bench.floats(dy), bench.floats(x), bench.floats(gain),
                                                       forward.inverse_rms);
    expect_equal(back.dx, rounded_to(expected.dx, dtype()));
    expect_equal(back.main_grad, sum_of(before, expected.dgain, grad_dtype()));
  }
}

TEST_P(Elementwise, SwigluAndBackward) {
  const View<real> in = bench.random(9 * 2 * 11, dtype(), 8.0f);
  const Swiglu op{in, bench.view(9 * 11, dtype()), 11};
  op.host(bench.memory());
  expect_equal(op.out, rounded_to(reference::swiglu(bench.floats(in), 11), dtype()));
  const SwigluBackward back{bench.random(9 * 11, dtype()), in, bench.view(9 * 2 * 11, dtype()), 11};
  back.host(bench.memory());
  expect_equal(back.din, rounded_to(reference::swiglu_backward(bench.floats(back.dout), bench.floats(in), 11),
                                    dtype()));
}

TEST_P(Elementwise, ResidualAdd) {
  const ResidualAdd op{bench.random(77, dtype()), bench.random(77, dtype()), bench.view(77, dtype())};
  op.host(bench.memory());
  expect_equal(op.sum, sum_of(bench.floats(op.x), bench.floats(op.branch), dtype()));
}

TEST_P(Elementwise, CrossEntropyAndBackward) {
  const uint32_t tokens = 13, vocab = 17;
  const View<real> logits = bench.random(tokens * vocab, dtype(), 4.0f);
  const View<int32_t> targets = bench.random_tokens(tokens, vocab);
  const View<float> max = bench.view<float>(tokens);
  const View<float> sum = bench.view<float>(tokens);
  const CrossEntropy op{logits, targets, bench.view<float>(1), max, sum};
  op.host(bench.memory());
  const auto forward =
      reference::cross_entropy(bench.floats(logits), bench.tokens(targets), static_cast<int>(vocab));
  expect_equal(op.loss, {forward.loss});
  expect_equal(max, forward.max);
  expect_equal(sum, forward.sum);

  const float coefficient = 1024.0f / 3.0f;
  const View<float> injection = bench.view<float>(1);
  for (const float injected : {0.0f, 2.5f}) {
    *bench.memory().out<float>(injection) = injected;
    const CrossEntropyBackward back{
        logits, targets, max, sum, injection, bench.view(tokens * vocab, dtype()), Coefficient{coefficient}};
    back.host(bench.memory());
    Values expected = reference::cross_entropy_backward<float>(forward, bench.tokens(targets), coefficient);
    expected[0] += injected;
    expect_equal(back.dlogits, rounded_to(expected, dtype()));
  }
}

TEST_P(Elementwise, TargetOutsideTheVocabularyIsNaN) {
  const View<int32_t> targets = bench.random_tokens(3, 3);
  bench.memory().out<int32_t>(targets)[1] = 1 << 24;
  const CrossEntropy op{bench.random(3 * 4, dtype()), targets, bench.view<float>(1), bench.view<float>(3),
                        bench.view<float>(3)};
  op.host(bench.memory());
  EXPECT_TRUE(std::isnan(bench.floats(op.loss)[0]));
}

}  // namespace
}  // namespace gatherfuzz
