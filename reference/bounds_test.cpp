// What shares of the hop-2 bounds honest implementations use, and by how much faults exceed them.
//
// Honest: the formulas in FP32 against the same in double, rounded at the same places. Faulty: weights one
// Adam step old (the first step, learning rate 1e-3), and one rank of two missing in the average. A fault is
// found when any parameter's gradient exceeds the bound, so its share is the largest over parameters.
#include "reference/bounds.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "reference/test_data.h"
#include "reference/trainer.h"

namespace gatherfuzz::reference {
namespace {

constexpr std::uint32_t kSeeds = 8;

struct Case {
  const char* name;
  Shape shape;
  Precision precision;
  ScaleRounding rounding;
  double deviation;  // of the initial weights
};

struct Shares {
  double honest_loss = 0, honest_gradient = 0;     // largest over seeds
  double stale_weights = 1e9, missing_rank = 1e9;  // smallest over seeds
  Bounds bounds;
};

using Gradients = std::vector<std::vector<float>>;

template <typename Real>
double largest_share(const std::vector<std::vector<Real>>& gradients, const Gradients& expected,
                     float bound) {
  double largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest =
        std::max(largest, test::relative_difference(gradients[i], expected[i]) / static_cast<double>(bound));
  }
  return largest;
}

// factor * (a + b)
Gradients combined(const Gradients& a, const Gradients& b, float factor) {
  Gradients sum = a;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    for (std::size_t j = 0; j < sum[i].size(); ++j) sum[i][j] = factor * (a[i][j] + b[i][j]);
  }
  return sum;
}

void measure(const Case& c, std::uint32_t seed, Shares& shares) {
  TrainSettings settings;
  settings.precision = c.precision;
  settings.scale_rounding = c.rounding;
  Trainer trainer(c.shape, settings, test::random_weights(c.shape, c.deviation, seed));
  const auto batch = [&](std::uint32_t number) { return test::random_batch(c.shape, 10 * seed + number); };
  const auto stale = trainer.weights();
  trainer.step({{batch(0)}, {batch(1)}}, 1e-3f);
  const auto fresh = trainer.weights();

  const Model model(c.shape, c.precision, c.rounding);
  const WideModel wide(c.shape, c.precision, c.rounding);
  const Batch own = batch(2);
  const Batch other = batch(3);
  const auto expected = model.forward_backward(model.prepare(fresh), own.tokens, own.targets, 1.0f);
  const auto honest = wide.forward_backward(wide.prepare(fresh), own.tokens, own.targets, 1.0);
  const auto old = model.forward_backward(model.prepare(stale), own.tokens, own.targets, 1.0f);
  const auto peer = model.forward_backward(model.prepare(fresh), other.tokens, other.targets, 1.0f);
  const Gradients zero = combined(expected.gradients, expected.gradients, 0.0f);

  shares.bounds = hop2_bounds(c.shape, c.precision, expected.logits_rms);
  const float bound = shares.bounds.gradient_relative;
  const double loss =
      std::fabs(honest.loss - static_cast<double>(expected.loss)) / static_cast<double>(shares.bounds.loss);
  shares.honest_loss = std::max(shares.honest_loss, loss);
  shares.honest_gradient =
      std::max(shares.honest_gradient, largest_share(honest.gradients, expected.gradients, bound));
  shares.stale_weights =
      std::min(shares.stale_weights, largest_share(old.gradients, expected.gradients, bound));
  const double missing = largest_share(combined(expected.gradients, zero, 0.5f),
                                       combined(expected.gradients, peer.gradients, 0.5f), bound);
  shares.missing_rank = std::min(shares.missing_rank, missing);
}

TEST(Hop2Bounds, HonestUsesAtMostHalfAndFaultsExceed) {
  const Shape large{2, 64, 128, 4, 32, 128, 1};
  const Shape small{2, 32, 32, 2, 32, 32, 1};
  int measured = 0;
  std::printf("%-22s %9s %9s %12s %12s %12s %12s\n", "case", "loss", "gradient", "honest loss", "honest grad",
              "stale", "rank missing");
  for (const double deviation : {0.02, 0.1}) {
    for (const Case& c :
         {Case{"H64 fp32", large, Precision::fp32, ScaleRounding::up, deviation},
          Case{"H64 bf16", large, Precision::bf16, ScaleRounding::up, deviation},
          Case{"H64 mxfp8 up", large, Precision::mxfp8, ScaleRounding::up, deviation},
          Case{"H64 mxfp8 floor", large, Precision::mxfp8, ScaleRounding::floor, deviation},
          Case{"H32 fp32", small, Precision::fp32, ScaleRounding::up, deviation},
          Case{"H32 bf16", small, Precision::bf16, ScaleRounding::up, deviation},
          Case{"H32 mxfp8 up", small, Precision::mxfp8, ScaleRounding::up, deviation},
          Case{"H32 mxfp8 floor", small, Precision::mxfp8, ScaleRounding::floor, deviation}}) {
      Shares shares;
      for (std::uint32_t seed = 0; seed < kSeeds; ++seed) measure(c, seed, shares);
      std::printf("%-16s std%.2f %9.2e %9.2e %12.4f %12.4f %12.2f %12.2f\n", c.name, deviation,
                  static_cast<double>(shares.bounds.loss),
                  static_cast<double>(shares.bounds.gradient_relative), shares.honest_loss,
                  shares.honest_gradient, shares.stale_weights, shares.missing_rank);
      EXPECT_LE(shares.honest_loss, 0.5) << c.name;
      EXPECT_LE(shares.honest_gradient, 0.5) << c.name;
      EXPECT_GT(shares.honest_gradient, 0.0) << "nothing differed: " << c.name;
      EXPECT_GT(shares.stale_weights, 1.0) << c.name;
      EXPECT_GT(shares.missing_rank, 1.0) << c.name;
      ++measured;
    }
  }
  EXPECT_EQ(measured, 16);
}

TEST(Hop2Bounds, GrowWithDepthAndLogitsAndNothingElseSurprises) {
  const Shape two{2, 32, 32, 2, 32, 32, 1};
  Shape eight = two;
  eight.num_layers = 8;
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::mxfp8}) {
    const Bounds shallow = hop2_bounds(two, precision, 0.1f);
    const Bounds deep = hop2_bounds(eight, precision, 0.1f);
    EXPECT_GT(deep.gradient_relative, 1.5f * shallow.gradient_relative);
    EXPECT_LT(deep.gradient_relative, 4.0f * shallow.gradient_relative);
    EXPECT_GT(hop2_bounds(two, precision, 1.0f).loss, shallow.loss);
  }
  EXPECT_LT(hop2_bounds(two, Precision::fp32, 0.1f).gradient_relative, 1e-3f);
  EXPECT_LT(hop2_bounds(two, Precision::bf16, 0.1f).gradient_relative,
            hop2_bounds(two, Precision::mxfp8, 0.1f).gradient_relative);
  Shape bf16_ends = two;
  bf16_ends.first_last_layers_bf16 = true;
  EXPECT_EQ(hop2_bounds(bf16_ends, Precision::mxfp8, 0.1f).gradient_relative,
            hop2_bounds(two, Precision::bf16, 0.1f).gradient_relative)
      << "no MX weight is left";
  bf16_ends.num_layers = 8;
  EXPECT_LT(hop2_bounds(bf16_ends, Precision::mxfp8, 0.1f).gradient_relative,
            hop2_bounds(eight, Precision::mxfp8, 0.1f).gradient_relative);
}

}  // namespace
}  // namespace gatherfuzz::reference
