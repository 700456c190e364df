#include "reference/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/test_data.h"

namespace gatherfuzz::reference {
namespace {

TEST(Adam, ConstantGradientsFollowTheClosedForm) {
  // With a constant gradient m / bc1 = g and v / bc2 = g^2 at every step, so each step moves by
  // lr * |g| / (|g| + eps). Each rounds a few operations, and main itself once.
  const AdamSettings settings{0.9f, 0.95f, 1e-3f};
  const std::vector<float> gradient = {0.5f, -2e-3f, 1e-4f, -3.0f, 0.0f};
  std::vector<float> main(gradient.size(), 0.25f);
  std::vector<float> moment1(gradient.size());
  std::vector<float> moment2(gradient.size());
  constexpr float kLr = 1e-2f;
  int compared = 0;
  for (int step = 1; step <= 20; ++step) {
    adam(settings, {main, moment1, moment2}, gradient, 1.0f, kLr, step);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double g = static_cast<double>(gradient[i]);
      const double move =
          static_cast<double>(kLr) * g / (std::fabs(g) + static_cast<double>(settings.epsilon));
      // The moments carry at most 3 roundings a step; bc1 = 1 - 0.9 and the like amplify at most by 20.
      const double tolerance = step * (0x1p-25 + std::fabs(move) * 20 * (3 * step + 6) * 0x1p-24);
      ASSERT_NEAR(static_cast<double>(main[i]), 0.25 - step * move, tolerance) << "step " << step;
      ASSERT_LT(tolerance, 1e-2 * kLr * step);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 100);
}

TEST(Adam, FirstStepBitsByHand) {
  std::vector<float> main = {1.0f};
  std::vector<float> moment1 = {0.0f};
  std::vector<float> moment2 = {0.0f};
  adam({0.5f, 0.75f, 0.0f}, {main, moment1, moment2}, std::vector<float>{4.0f}, 0.5f, 0.125f, 1);
  EXPECT_EQ(moment1[0], 1.0f);  // (1 - 0.5) * (4 * 0.5)
  EXPECT_EQ(moment2[0], 1.0f);  // (1 - 0.75) * 2 * 2
  EXPECT_EQ(main[0], 0.875f);   // 1 - 0.125 * (1 / 0.5) / sqrt(1 / 0.25)
}

// Without a gradient only the decay is left: main_n = main_0 * (1 - lr * weight_decay)^n.
TEST(Adam, DecayAloneIsGeometric) {
  AdamSettings settings;
  settings.weight_decay = 0.25f;
  std::vector<float> main = {0.75f, -2.0f, 0.0f}, moment1(3), moment2(3);
  const std::vector<float> first = main, gradient(3);
  for (int step = 1; step <= 20; ++step) {
    adam(settings, {main, moment1, moment2}, gradient, 1.0f, 0.125f, step);
    for (std::size_t i = 0; i < main.size(); ++i) {
      const double exact = static_cast<double>(first[i]) * std::pow(1.0 - 0.25 * 0.125, step);
      ASSERT_NEAR(static_cast<double>(main[i]), exact, std::fabs(exact) * step * 0x1p-23) << step;
    }
  }
  EXPECT_EQ(main[2], 0.0f);
  EXPECT_LT(main[0], 0.5f);
}

// The decay moves main by lr * weight_decay * main more, with main as it was, and leaves the moments alone.
TEST(Adam, DecayIsDecoupled) {
  const std::vector<float> gradient = {4.0f};
  std::vector<float> main = {1.0f}, moment1 = {0.0f}, moment2 = {0.0f};
  adam({0.5f, 0.75f, 0.0f, 0.5f}, {main, moment1, moment2}, gradient, 0.5f, 0.125f, 1);
  EXPECT_EQ(moment1[0], 1.0f);
  EXPECT_EQ(moment2[0], 1.0f);
  EXPECT_EQ(main[0], 0.8125f);  // 1 - 0.125 * (1 + 0.5 * 1)
}

TEST(Adam, OnlyMatricesDecay) {
  AdamSettings settings;
  settings.weight_decay = 0.1f;
  std::size_t norms = 0, matrices = 0;
  for (const ParamShape& param : param_shapes({2, 32, 32, 2, 16, 32, 2})) {
    const bool norm = param.name.find("norm") != std::string::npos;
    EXPECT_EQ(settings_for(param, settings).weight_decay, norm ? 0.0f : 0.1f) << param.name;
    EXPECT_EQ(settings_for(param, settings).beta2, settings.beta2);
    ++(norm ? norms : matrices);
  }
  EXPECT_EQ(norms, 5u);
  EXPECT_EQ(matrices, 10u);
}

TEST(Reduce, AddsRanksInAscendingOrderAndRoundsOnce) {
  // Descending order would give 1 + 2^-23.
  EXPECT_EQ(reduce(GradPrecision::fp32, {{1.0f}, {0x1p-24f}, {0x1p-24f}}, false)[0], 1.0f);
  EXPECT_EQ(reduce(GradPrecision::fp32, {{0x1p-24f}, {0x1p-24f}, {1.0f}}, false)[0], 1.0f + 0x1p-23f);
  // Rounding after each addition would stay at 1 (bf16 steps by 2^-7 there).
  EXPECT_EQ(reduce(GradPrecision::bf16, {{1.0f}, {0x1p-8f}, {0x1p-8f}}, false)[0], 1.0f + 0x1p-7f);
  EXPECT_EQ(reduce(GradPrecision::bf16, {{3.0f}, {1.0f}}, true)[0], 2.0f);
  // The average is rounded once, at the end: 1/3 + 2^-8/3, neither of them rounded before.
  EXPECT_EQ(reduce(GradPrecision::bf16, {{1.0f}, {0x1p-8f}, {0.0f}}, true)[0],
            round_to_bf16(1.0f * (1.0f / 3.0f) + 0x1p-8f * (1.0f / 3.0f)));
  // Each value is multiplied before the sum, which then is not 1 + 2^-23 times a third.
  const float third = 1.0f / 3.0f;
  EXPECT_EQ(reduce(GradPrecision::fp32, {{1.0f}, {1.0f}, {1.0f}}, true)[0], third + third + third);
}

TEST(Gradients, AccumulateScaleAndUnscaleRoundInTheGradPrecision) {
  std::vector<float> grad = {1.0f};
  accumulate(GradPrecision::bf16, grad, std::vector<float>{0x1p-8f});
  EXPECT_EQ(grad[0], 1.0f);
  accumulate(GradPrecision::fp32, grad, std::vector<float>{0x1p-8f});
  EXPECT_EQ(grad[0], 1.0f + 0x1p-8f);
  scale_before_sum(GradPrecision::fp32, grad, 4);
  EXPECT_EQ(grad[0], 0.25f + 0x1p-10f);
  scale_before_sum(GradPrecision::bf16, grad, 1);
  EXPECT_EQ(grad[0], 0.25f);
  unscale(grad, std::nullopt);
  EXPECT_EQ(grad[0], 0.25f);
  unscale(grad, 8.0f);
  EXPECT_EQ(grad[0], 0.03125f);
}

TEST(GlobalNorm, IsExactAndSaysHowExact) {
  const GlobalNorm simple = global_norm({{3.0f, 0.0f}, {-4.0f}});
  EXPECT_EQ(simple.value, 5.0f);
  EXPECT_EQ(simple.lower, 5.0f);
  EXPECT_EQ(simple.upper, 5.0f);
  // An FP32 sum of squares would lose the small ones: 2^20 of (2^-12)^2 beside 1.
  const GlobalNorm wide = global_norm({{1.0f}, std::vector<float>(1 << 20, 0x1p-12f)});
  EXPECT_EQ(wide.value, static_cast<float>(std::sqrt(1.0 + 0x1p-4)));
  int agree = 0;
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    const auto values = test::random_values(1000, 1.0, seed);
    const GlobalNorm norm = global_norm({std::vector<float>(values.begin(), values.end())});
    EXPECT_LE(norm.lower, norm.value);
    EXPECT_LE(norm.value, norm.upper);
    agree += norm.lower == norm.upper ? 1 : 0;
  }
  EXPECT_GE(agree, 99);
}

TEST(Clip, OnlyShrinks) {
  EXPECT_EQ(clip_coefficient(10.0f, 0.0f), 1.0f);
  EXPECT_EQ(clip_coefficient(0.5f, 1.0f), 1.0f);
  EXPECT_EQ(clip_coefficient(4.0f, 1.0f), 1.0f / (4.0f + 1e-6f));
  EXPECT_EQ(clip_coefficient(std::numeric_limits<float>::infinity(), 1.0f), 0.0f);
}

TEST(Finite, FindsInfinityAndNan) {
  EXPECT_TRUE(all_finite(std::vector<float>{0.0f, 3e38f}));
  EXPECT_FALSE(all_finite(std::vector<float>{0.0f, -std::numeric_limits<float>::infinity()}));
  EXPECT_FALSE(all_finite(std::vector<float>{std::numeric_limits<float>::quiet_NaN(), 0.0f}));
}

}  // namespace
}  // namespace gatherfuzz::reference
