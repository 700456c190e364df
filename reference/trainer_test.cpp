#include "reference/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/test_data.h"

namespace gatherfuzz::reference {
namespace {

const Shape kShape{2, 32, 32, 2, 16, 32, 2};

Trainer make_trainer(const TrainSettings& settings) {
  return Trainer(kShape, settings, test::random_weights(kShape, 0.02, 1));
}

TEST(Trainer, EqualRanksAndEqualMicrobatchesAreOne) {
  // 1/2 of a value, twice, is exact in FP32 and bf16: no bit may change.
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::mxfp8}) {
    for (const bool average : {false, true}) {
      TrainSettings settings;
      settings.precision = precision;
      settings.average_in_collective = average;
      settings.clip_grad = 0.5f;
      Trainer one = make_trainer(settings);
      Trainer ranks = make_trainer(settings);
      Trainer microbatches = make_trainer(settings);
      for (std::uint32_t step = 0; step < 3; ++step) {
        const Batch batch = test::random_batch(kShape, step);
        const StepResult expected = one.step({{batch}}, 1e-3f);
        EXPECT_EQ(ranks.step({{batch}, {batch}}, 1e-3f).grad_norm, expected.grad_norm);
        EXPECT_EQ(microbatches.step({{batch, batch}}, 1e-3f).loss, expected.loss);
      }
      EXPECT_TRUE(ranks.main_params() == one.main_params());
      EXPECT_TRUE(microbatches.main_params() == one.main_params());
    }
  }
}

TEST(Trainer, LearnsAMapping) {
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::mxfp8}) {
    TrainSettings settings;
    settings.precision = precision;
    settings.clip_grad = 1.0f;
    Trainer trainer = make_trainer(settings);
    const auto batch = [](std::uint32_t seed) {
      Batch made = test::random_batch(kShape, seed);
      for (std::size_t i = 0; i < made.tokens.size(); ++i) made.targets[i] = (made.tokens[i] * 5 + 3) % 32;
      return made;
    };
    const float first = trainer.step({{batch(0)}, {batch(1)}}, 3e-3f).loss;
    float last = first;
    for (std::uint32_t step = 1; step < 100; ++step) {
      last = trainer.step({{batch(2 * step)}, {batch(2 * step + 1)}}, 3e-3f).loss;
    }
    EXPECT_NEAR(first, std::log(32.0f), 0.05f);
    EXPECT_LT(last, 0.3f);
  }
}

TEST(Trainer, LossScaleOfAPowerOfTwoChangesNoBit) {
  TrainSettings settings;
  settings.precision = Precision::bf16;
  Trainer plain = make_trainer(settings);
  settings.loss_scale = 1024.0f;
  Trainer scaled = make_trainer(settings);
  const Batch batch = test::random_batch(kShape, 3);
  EXPECT_EQ(plain.step({{batch}}, 1e-3f).grad_norm, scaled.step({{batch}}, 1e-3f).grad_norm);
  EXPECT_TRUE(plain.main_params() == scaled.main_params());
}

TEST(Trainer, SkipsAStepWithNonFiniteGradients) {
  TrainSettings settings;
  settings.loss_scale = std::numeric_limits<float>::infinity();
  const Batch batch = test::random_batch(kShape, 3);
  Trainer trainer = make_trainer(settings);
  const auto before = trainer.main_params();
  EXPECT_TRUE(trainer.step({{batch}}, 1e-3f).skipped);
  EXPECT_TRUE(trainer.main_params() == before);
  settings.loss_scale = 2.0f;
  Trainer healthy = make_trainer(settings);
  EXPECT_FALSE(healthy.step({{batch}}, 1e-3f).skipped);
  EXPECT_FALSE(healthy.main_params() == before);
}

TEST(Trainer, SkipsAStepWhoseNormIsOverTheThreshold) {
  TrainSettings settings;
  const Batch batch = test::random_batch(kShape, 3);
  const float norm = make_trainer(settings).step({{batch}}, 1e-3f).grad_norm;
  for (const auto& [threshold, skipped] :
       {std::pair{norm, false}, {std::nextafter(norm, 0.0f), true}, {std::nextafter(norm, 1e30f), false}}) {
    settings.grad_norm_skip_threshold = threshold;
    Trainer trainer = make_trainer(settings);
    const auto before = trainer.main_params();
    EXPECT_EQ(trainer.step({{batch}}, 1e-3f).skipped, skipped);
    EXPECT_EQ(trainer.main_params() == before, skipped);
    EXPECT_EQ(trainer.steps_taken(), skipped ? 0 : 1);
  }
}

TEST(Trainer, WeightsAreMainParamsInBf16) {
  auto main = test::random_weights(kShape, 0.02, 1);
  main[0][0] = 1.0f + 0x1p-20f;
  TrainSettings settings;
  EXPECT_EQ(Trainer(kShape, settings, main).weights()[0][0], 1.0f + 0x1p-20f);
  settings.precision = Precision::mxfp8;
  EXPECT_EQ(Trainer(kShape, settings, main).weights()[0][0], 1.0f);
}

}  // namespace
}  // namespace gatherfuzz::reference
