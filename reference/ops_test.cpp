// Every backward formula against central differences of its forward, all entries, in double.
#include "reference/ops.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "reference/attention.h"
#include "reference/test_data.h"

namespace gatherfuzz::reference {
namespace {

using Values = std::vector<double>;

double weighted_sum(const Values& values, const Values& weights) {
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * weights[i];
  return sum;
}

// Checks gradient against the derivative of value(input) in every entry; returns how many were checked.
int check_gradient(Values input, const Values& gradient, const std::function<double(const Values&)>& value) {
  constexpr double kStep = 0x1p-12;
  constexpr double kMagnitude = 64;  // of the value and its partial sums, at most
  constexpr double kRoundoff = kMagnitude * 64 * std::numeric_limits<double>::epsilon();
  EXPECT_LT(std::fabs(value(input)), kMagnitude);
  EXPECT_EQ(gradient.size(), input.size());
  double largest = 0;
  for (const double g : gradient) largest = std::max(largest, std::fabs(g));
  for (std::size_t i = 0; i < input.size(); ++i) {
    const double at = input[i];
    const auto measured = test::central_difference(
        [&](double step) {
          input[i] = at + step;
          return value(input);
        },
        kStep, kRoundoff);
    input[i] = at;
    EXPECT_NEAR(gradient[i], measured.derivative, measured.tolerance) << "entry " << i;
    EXPECT_LT(measured.tolerance, 1e-5 * largest) << "too loose to show an error, entry " << i;
  }
  return static_cast<int>(input.size());
}

TEST(OpsGradient, Product) {
  const Values left = test::random_values(3 * 40, 1, 1);
  const Values right = test::random_values(40 * 35, 1, 2);
  const Values dout = test::random_values(3 * 35, 1, 3);
  const Values dleft = product(dout, transpose(right, 40, 35), 3, 35, 40);
  const Values dright = product(transpose(left, 3, 40), dout, 40, 3, 35);
  int checked = check_gradient(
      left, dleft, [&](const Values& x) { return weighted_sum(product(x, right, 3, 40, 35), dout); });
  checked += check_gradient(right, dright,
                            [&](const Values& x) { return weighted_sum(product(left, x, 3, 40, 35), dout); });
  EXPECT_EQ(checked, 3 * 40 + 40 * 35);
}

TEST(OpsGradient, Embedding) {
  const std::vector<std::int32_t> tokens = {2, 0, 2, 3};
  const Values dout = test::random_values(4 * 6, 1, 2);
  EXPECT_EQ(check_gradient(test::random_values(5 * 6, 1, 1), embedding_backward(dout, tokens, 5, 6),
                           [&](const Values& x) { return weighted_sum(embedding(x, tokens, 6), dout); }),
            5 * 6);
}

TEST(OpsGradient, RmsNorm) {
  const Values x = test::random_values(5 * 8, 2, 1);
  const Values gain = test::random_values(8, 2, 2);
  const Values dout = test::random_values(5 * 8, 1, 3);
  const auto gradients = rms_norm_backward(dout, x, gain, rms_norm(x, gain).inverse_rms);
  int checked = check_gradient(
      x, gradients.dx, [&](const Values& input) { return weighted_sum(rms_norm(input, gain).y, dout); });
  checked += check_gradient(gain, gradients.dgain,
                            [&](const Values& input) { return weighted_sum(rms_norm(x, input).y, dout); });
  EXPECT_EQ(checked, 5 * 8 + 8);
}

TEST(OpsGradient, Attention) {
  const AttentionShape shape{2, 5, 2, 3};
  const Values qkv = test::random_values(10 * 18, 1.5, 1);
  const Values dout = test::random_values(10 * 6, 1, 2);
  EXPECT_EQ(check_gradient(qkv, attention_backward(shape, qkv, attention(shape, qkv), dout),
                           [&](const Values& x) { return weighted_sum(attention(shape, x).context, dout); }),
            10 * 18);
}

TEST(OpsGradient, Swiglu) {
  const Values in = test::random_values(4 * 10, 3, 1);
  const Values dout = test::random_values(4 * 5, 1, 2);
  EXPECT_EQ(check_gradient(in, swiglu_backward(dout, in, 5),
                           [&](const Values& x) { return weighted_sum(swiglu(x, 5), dout); }),
            4 * 10);
}

TEST(OpsGradient, CrossEntropy) {
  const std::vector<std::int32_t> targets = {1, 6, 0};
  const Values logits = test::random_values(3 * 7, 3, 1);
  constexpr double kCoefficient = 0.75;
  const Values dlogits =
      cross_entropy_backward<double>(cross_entropy(logits, targets, 7), targets, kCoefficient);
  EXPECT_EQ(check_gradient(logits, dlogits,
                           [&](const Values& x) { return kCoefficient * cross_entropy(x, targets, 7).loss; }),
            3 * 7);
}

TEST(Ops, AttentionSeesNoLaterTokenAndNoOtherSequence) {
  const AttentionShape shape{2, 4, 2, 3};
  Values qkv = test::random_values(8 * 18, 1, 1);
  const Values before = attention(shape, qkv).context;
  for (std::size_t i = 2 * 18; i < 3 * 18; ++i) qkv[i] += 1;  // token 2 of the first sequence
  const Values after = attention(shape, qkv).context;
  for (std::size_t token = 0; token < 8; ++token) {
    const bool changed = !std::equal(&before[token * 6], &before[token * 6] + 6, &after[token * 6]);
    EXPECT_EQ(changed, token == 2 || token == 3) << "token " << token;
  }
}

TEST(Ops, FloatSumsAscend) {
  // 1 + 2^-24 stays 1, so only ascending order leaves 1 here and 1 + 2^-23 below.
  const std::vector<float> ones = {1, 1, 1};
  EXPECT_EQ(product<float>(ones, {1, 0x1p-24f, 0x1p-24f}, 1, 3, 1)[0], 1.0f);
  EXPECT_EQ(product<float>(ones, {0x1p-24f, 0x1p-24f, 1}, 1, 3, 1)[0], 1.0f + 0x1p-23f);
}

}  // namespace
}  // namespace gatherfuzz::reference
