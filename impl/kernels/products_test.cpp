// Linear maps, plain and MXFP8, and attention against the reference's formulas, bit for bit.
#include <gtest/gtest.h>

#include "impl/kernels/attention.h"
#include "impl/kernels/kernel_bench_for_tests.h"
#include "impl/kernels/linear.h"
#include "impl/kernels/mx_linear.h"
#include "impl/kernels/quantize_activation.h"
#include "impl/kernels/quantize_on_use.h"
#include "reference/attention.h"
#include "reference/formats.h"
#include "reference/ops.h"

namespace gatherfuzz {
namespace {

using Values = std::vector<float>;
using reference::product;
using reference::transpose;

Values sum_of(const Values& a, const Values& b, DType dtype) {
  Values sum(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) sum[i] = a[i] + b[i];
  return rounded_to(sum, dtype);
}

class Products : public testing::TestWithParam<DType> {
 protected:
  void expect_equal(const Operand& found, const Values& expected) {
    ASSERT_GT(expected.size(), 0u);
    EXPECT_EQ(differing_bits(bench.floats(found), expected), 0u) << "of " << expected.size();
  }
  KernelBench bench{31};
};

INSTANTIATE_TEST_SUITE_P(Dtypes, Products, testing::Values(DType::bf16, DType::f32),
                         [](const auto& test) { return name_of(test.param); });

TEST_P(Products, LinearAndItsGradients) {
  struct Case {
    int tokens, inputs, outputs;
  };
  for (const Case& c : {Case{13, 7, 5}, Case{32, 32, 96}, Case{3, 20, 33}}) {
    const auto n = [](int a, int b) { return static_cast<uint32_t>(a * b); };
    const View<real> x = bench.random(n(c.tokens, c.inputs), GetParam());
    const View<real> w = bench.random(n(c.outputs, c.inputs), GetParam());
    const View<real> dy = bench.random(n(c.tokens, c.outputs), GetParam());
    const Linear forward{x, w, bench.view(n(c.tokens, c.outputs), GetParam()), c.inputs, c.outputs};
    const LinearDgrad dgrad{dy, w, bench.view(n(c.tokens, c.inputs), GetParam()), c.inputs, c.outputs};
    const LinearWgrad wgrad{dy, x, bench.random(n(c.outputs, c.inputs), GetParam()), c.inputs, c.outputs};
    const Values before = bench.floats(wgrad.main_grad);
    forward.host(bench.memory());
    dgrad.host(bench.memory());
    wgrad.host(bench.memory());
    const Values xs = bench.floats(x), ws = bench.floats(w), dys = bench.floats(dy);
    expect_equal(forward.y,
                 rounded_to(product(xs, transpose(ws, c.outputs, c.inputs), c.tokens, c.inputs, c.outputs),
                            GetParam()));
    expect_equal(dgrad.dx, rounded_to(product(dys, ws, c.tokens, c.outputs, c.inputs), GetParam()));
    const Values summand = product(transpose(dys, c.tokens, c.outputs), xs, c.outputs, c.tokens, c.inputs);
    expect_equal(wgrad.main_grad, sum_of(before, summand, GetParam()));
  }
}

TEST_P(Products, AttentionAndBackward) {
  struct Case {
    int sequences, seq_length, heads, dim;
  };
  for (const Case& c : {Case{1, 32, 2, 16}, Case{3, 7, 3, 5}, Case{2, 1, 1, 4}, Case{1, 10, 2, 9}}) {
    const int tokens = c.sequences * c.seq_length;
    const int hidden = c.heads * c.dim;
    const auto n = [](int a, int b) { return static_cast<uint32_t>(a * b); };
    const View<real> qkv = bench.random(n(tokens, 3 * hidden), GetParam(), 2.0f);
    const View<float> max = bench.view<float>(n(tokens, c.heads));
    const View<float> sum = bench.view<float>(n(tokens, c.heads));
    const Attention op{qkv, bench.view(n(tokens, hidden), GetParam()), max, sum, c.seq_length, c.heads};
    op.host(bench.memory());
    const reference::AttentionShape shape{c.sequences, c.seq_length, c.heads, c.dim};
    const auto forward = reference::attention(shape, bench.floats(qkv));
    expect_equal(op.context, rounded_to(forward.context, GetParam()));
    expect_equal(max, forward.max);
    expect_equal(sum, forward.sum);
    const View<real> dcontext = bench.random(n(tokens, hidden), GetParam());
    const AttentionBackward back{
        qkv, dcontext, max, sum, bench.view(n(tokens, 3 * hidden), GetParam()), c.seq_length, c.heads};
    back.host(bench.memory());
    expect_equal(back.dqkv, rounded_to(reference::attention_backward(shape, bench.floats(qkv), forward,
                                                                     bench.floats(dcontext)),
                                       GetParam()));
  }
}

// What is not finite in later tokens does not reach earlier ones, which masking by multiplication would let
// it.
TEST_P(Products, AttentionIsCausalForNaN) {
  const View<real> qkv = bench.random(8 * 3 * 4, GetParam());
  const View<float> max = bench.view<float>(8), sum = bench.view<float>(8);
  Values values = bench.floats(qkv);
  for (std::size_t i = 5 * 12; i < values.size(); ++i) values[i] = std::numeric_limits<float>::quiet_NaN();
  bench.memory().store(qkv, values.data());
  const Attention op{qkv, bench.view(8 * 4, GetParam()), max, sum, 8, 1};
  op.host(bench.memory());
  const Values context = bench.floats(op.context);
  for (std::size_t i = 0; i < context.size(); ++i) EXPECT_EQ(std::isnan(context[i]), i >= 20) << i;
}

class MxProducts : public Products {
 protected:
  struct Planes {
    View<e4m3> rowwise;
    View<e8m0> rowwise_scale;
    View<e4m3> columnwise;
    View<e8m0> columnwise_scale;
  };
  Planes planes(uint32_t n) {
    return {bench.view<e4m3>(n), bench.view<e8m0>(n / 32), bench.view<e4m3>(n), bench.view<e8m0>(n / 32)};
  }
  template <class Op>
  Planes quantized(const View<real>& source, int cols, ScaleRounding rounding) {
    const Planes p = planes(source.count());
    Op{source, p.rowwise, p.rowwise_scale, p.columnwise, p.columnwise_scale, cols, rounding}.host(
        bench.memory());
    return p;
  }
};

TEST_F(MxProducts, ForwardDgradAndWgrad) {
  const int tokens = 32, inputs = 64, outputs = 96;
  for (const ScaleRounding rounding : {ScaleRounding::up, ScaleRounding::floor}) {
    const auto theirs =
        rounding == ScaleRounding::up ? reference::ScaleRounding::up : reference::ScaleRounding::floor;
    const View<real> x = bench.random(tokens * inputs, DType::bf16);
    const View<real> w = bench.random(outputs * inputs, DType::bf16);
    const View<real> dy = bench.random(tokens * outputs, DType::bf16, 1e-3f);
    const Planes qx = quantized<QuantizeActivation>(x, inputs, rounding);
    const Planes qw = quantized<QuantizeOnUse>(w, inputs, rounding);
    const Planes qdy = quantized<QuantizeActivation>(dy, outputs, rounding);
    const MxLinear forward{
        qx.rowwise, qx.rowwise_scale, qw.rowwise, qw.rowwise_scale, bench.view(tokens * outputs, DType::bf16),
        inputs,     outputs};
    const MxLinearDgrad dgrad{qdy.rowwise,
                              qdy.rowwise_scale,
                              qw.columnwise,
                              qw.columnwise_scale,
                              bench.view(tokens * inputs, DType::bf16),
                              inputs,
                              outputs};
    const MxLinearWgrad wgrad{qdy.columnwise,
                              qdy.columnwise_scale,
                              qx.columnwise,
                              qx.columnwise_scale,
                              bench.random(outputs * inputs, DType::f32),
                              inputs,
                              outputs};
    const Values before = bench.floats(wgrad.main_grad);
    forward.host(bench.memory());
    dgrad.host(bench.memory());
    wgrad.host(bench.memory());
    const auto rowwise = [&](const View<real>& view, int rows, int cols) {
      return reference::quantize_rowwise(bench.floats(view), rows, cols, theirs).values;
    };
    const auto columnwise = [&](const View<real>& view, int rows, int cols) {
      return reference::quantize_columnwise(bench.floats(view), rows, cols, theirs).values;
    };
    const Values wt = transpose(rowwise(w, outputs, inputs), outputs, inputs);
    expect_equal(forward.y,
                 rounded_to(product(rowwise(x, tokens, inputs), wt, tokens, inputs, outputs), DType::bf16));
    expect_equal(dgrad.dx, rounded_to(product(rowwise(dy, tokens, outputs), columnwise(w, outputs, inputs),
                                              tokens, outputs, inputs),
                                      DType::bf16));
    const Values summand = product(transpose(columnwise(dy, tokens, outputs), tokens, outputs),
                                   columnwise(x, tokens, inputs), outputs, tokens, inputs);
    expect_equal(wgrad.main_grad, sum_of(before, summand, DType::f32));
  }
}

}  // namespace
}  // namespace gatherfuzz
