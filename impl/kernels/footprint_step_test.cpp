// Footprints of the ops of a step outside of the model: fills, main params, weights, gradients, norm, Adam.
#include <gtest/gtest.h>

#include <limits>

#include "impl/kernels/adam.h"
#include "impl/kernels/fill.h"
#include "impl/kernels/footprint_checker_for_tests.h"
#include "impl/kernels/grad_norm.h"
#include "impl/kernels/gradients.h"
#include "impl/kernels/hash_weights.h"
#include "impl/kernels/main_params.h"
#include "impl/kernels/quantize_weight.h"

namespace gatherfuzz {
namespace {

class StepFootprint : public testing::TestWithParam<DType> {
 protected:
  template <class Op>
  void expect_true(const Op& op, std::size_t read_bytes, std::size_t write_bytes, std::size_t updated = 0) {
    const FootprintReport report = check_footprint(bench, op);
    EXPECT_TRUE(report.is_true()) << Op::kName << ": " << report.text();
    EXPECT_EQ(report.read_bytes, read_bytes);
    EXPECT_EQ(report.write_bytes, write_bytes);
    EXPECT_EQ(report.accumulated, updated);
    EXPECT_GT(report.other_bytes, 0u);
  }
  // For ops that set a flag if one of the values is not finite. No single byte of a number decides that, so
  // elements are tried: each of them matters, the flag is kept where all are finite, and nothing else
  // changes.
  template <class Op>
  void expect_flag_of_each_element(const Op& op, const View<real>& values, const View<float>& flag) {
    const FootprintReport report = check_footprint(bench, op);
    EXPECT_EQ(report.others_written, 0u);
    EXPECT_FALSE(report.others_read);
    HostMemory& memory = bench.memory();
    const std::vector<float> numbers = bench.floats(values);
    for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
      for (std::size_t i = 0; i <= numbers.size(); ++i) {
        std::vector<float> changed = numbers;
        if (i < numbers.size()) changed[i] = bad;
        for (const float before : {0.0f, 1.0f}) {
          memory.store(values, changed.data());
          *memory.out<float>(flag) = before;
          op.host(memory);
          memory.end_op();
          EXPECT_EQ(*memory.in<float>(flag), i < numbers.size() ? 1.0f : before) << i;
        }
      }
    }
  }
  std::size_t width() const { return size_of(GetParam()); }
  View<real> random(uint32_t n, float limit = 1.0f) { return bench.random(n, GetParam(), limit); }
  View<real> view(uint32_t n) { return bench.view(n, GetParam()); }
  KernelBench bench{43};
};

INSTANTIATE_TEST_SUITE_P(Dtypes, StepFootprint, testing::Values(DType::bf16, DType::f32),
                         [](const auto& test) { return name_of(test.param); });

TEST_P(StepFootprint, ScaleGradients) {
  expect_true(ScaleGradients{random(9), Coefficient{1.0f / 3.0f}}, 0, 0, 9);
}
TEST_P(StepFootprint, CheckGradients) {
  const View<real> values = random(9, 1e38f);
  const View<float> flag = bench.view<float>(1);
  expect_flag_of_each_element(CheckGradients{values, flag}, values, flag);
}
TEST_P(StepFootprint, CopyReducedGradients) {
  expect_true(CopyReducedGradients{random(9), bench.view<float>(9)}, 9 * width(), 36);
}
TEST_P(StepFootprint, PoisonShard) {
  expect_true(PoisonShard{view(1)}, 0, width());
}
TEST_P(StepFootprint, CopyMainParams) {
  // Halfway between two bf16 values, so that each lower byte decides the rounding.
  const View<float> main = bench.random_floats(9);
  auto* bits = bench.memory().out<uint32_t>(main);
  for (uint32_t i = 0; i < 9; ++i) bits[i] = (bits[i] & 0xFFFE0000u) | 0x8000u;
  expect_true(CopyMainParams{main, view(9)}, 36, 9 * width());
}

class StepFootprints : public StepFootprint {};

TEST_F(StepFootprints, Fills) {
  expect_true(ZeroGradBuffer{bench.view<uint8_t>(19)}, 0, 19);
  expect_true(ZeroParamRange{View<raw>(bench.view<bf16>(9))}, 0, 18);
  expect_true(ZeroScalars{bench.view<uint64_t>(3)}, 0, 24);
  expect_true(SetScalar{bench.view<float>(1), 2.5f}, 0, 4);
}
TEST_F(StepFootprints, InitMainParams) {
  expect_true(InitMainParams{bench.view<float>(9), 3, 2, 5, 0.5f, 1.0f}, 0, 36);
}
TEST_F(StepFootprints, CopyState) {
  expect_true(CopyState{bench.random_floats(9), bench.view<float>(9)}, 36, 36);
}
TEST_F(StepFootprints, QuantizeWeight) {
  constexpr uint32_t kRows = 32, kCols = 64;
  expect_true(
      QuantizeWeight{View<bf16>(bench.random(kRows * kCols, DType::bf16)), bench.view<e4m3>(kRows * kCols),
                     bench.view<e8m0>(kRows * kCols / 32), bench.view<e4m3>(kRows * kCols),
                     bench.view<e8m0>(kRows * kCols / 32), kRows, kCols},
      kRows * kCols * 2, 2 * kRows * kCols + 2 * kRows * kCols / 32);
}
TEST_F(StepFootprints, UnscaleGradients) {
  const View<float> grads = bench.random_floats(9), flag = bench.view<float>(1);
  const UnscaleGradients op{grads, flag, Coefficient{0.125f}};
  FootprintReport report = check_footprint(bench, op);
  EXPECT_EQ(report.olds_that_never_matter, 0u);
  EXPECT_EQ(report.accumulated, 10u);
  EXPECT_EQ(report.sums_missed, 1u) << "the flag, as all are finite";
  expect_flag_of_each_element(op, grads, flag);
}
TEST_F(StepFootprints, AverageLoss) {
  expect_true(AverageLoss{bench.random_floats(4), bench.view<float>(1), Coefficient{0.25f}}, 16, 4);
}
// A value for each pair of bins, and one that is not finite: with them every bin is added to.
TEST_F(StepFootprints, AddSquares) {
  const View<float> grads = bench.view<float>(65);
  for (uint32_t pair = 0; pair < 64; ++pair)
    bench.memory().out<float>(grads)[pair] = std::ldexp(0x800001p0f, static_cast<int>(4 * pair) - 149);
  bench.memory().out<float>(grads)[64] = std::numeric_limits<float>::infinity();
  const FootprintReport report = check_footprint(bench, AddSquares{grads, bench.view<uint64_t>(kNormBins)});
  EXPECT_EQ(report.reads_that_never_matter, 2u) << "low bytes of what is not finite; " << report.text();
  EXPECT_EQ(report.read_bytes, 65u * 4);
  EXPECT_EQ(report.olds_that_never_matter + report.sums_missed + report.others_written, 0u) << report.text();
  EXPECT_EQ(report.accumulated, kNormBins);
  EXPECT_FALSE(report.others_read);
}
// From zero each bin matters; beside a larger one the small ones would be rounded away.
TEST_F(StepFootprints, FinishNorm) {
  const View<uint64_t> bins = bench.view<uint64_t>(kNormBins);
  std::fill_n(bench.memory().out<uint64_t>(bins), kNormBins, 0);
  expect_true(FinishNorm{bins, bench.view<float>(1)}, kNormBins * 8, 4);
}
TEST_F(StepFootprints, HashesOfWeights) {
  expect_true(HashPlanes{bench.view<e4m3>(32), bench.view<e8m0>(1), bench.view<e4m3>(32), bench.view<e8m0>(1),
                         bench.view<uint64_t>(1)},
              66, 8);
  expect_true(HashWhole{View<real>(bench.view<bf16>(5)), bench.view<uint64_t>(1)}, 10, 8);
}
// Equal ones, so that each byte of another rank's hash can make a difference.
TEST_F(StepFootprints, CompareHashes) {
  const View<uint64_t> hashes = bench.view<uint64_t>(6);
  for (uint32_t i = 0; i < 6; ++i) bench.memory().out<uint64_t>(hashes)[i] = 0x0102030405060708u + i % 2;
  expect_true(CompareHashes{hashes, bench.view<float>(1), 3}, 48, 4);
}
TEST_F(StepFootprints, ClipCoefficient) {
  const View<float> norm = bench.view<float>(1);
  *bench.memory().out<float>(norm) = 3.7f;
  expect_true(ClipCoefficient{norm, bench.view<float>(1), Coefficient{1.0f}}, 4, 4);
}
// So many elements, and so large an LR, that rounding hides no byte of the step's scalars from all of them.
TEST_F(StepFootprints, Adam) {
  constexpr uint32_t n = 17;
  const View<float> squares = bench.random_floats(n);
  for (uint32_t i = 0; i < n; ++i) bench.memory().out<float>(squares)[i] = bench.uniform(0.5f) + 1.0f;
  const View<float> coefficient = bench.view<float>(1), step_scalars = bench.view<float>(kAdamStepScalars);
  *bench.memory().out<float>(coefficient) = 0.75f;
  AdamStepScalars of_step = adam_step_scalars(1.0, 0.9, 0.95, 2);
  of_step.target = step_scalars;
  expect_true(of_step, 0, 12);
  of_step.host(bench.memory());
  expect_true(Adam{bench.random_floats(n), bench.random_floats(n), squares, bench.random_floats(n),
                   coefficient, step_scalars, adam_constants(0.9, 0.95, 1e-8)},
              n * 4 + 16, 0, 3 * n);
}

}  // namespace
}  // namespace gatherfuzz
