// Footprints are true: every declared read byte can matter, every declared byte is written, nothing else is
// touched.
#include <gtest/gtest.h>

#include "impl/kernels/attention.h"
#include "impl/kernels/cross_entropy.h"
#include "impl/kernels/embedding.h"
#include "impl/kernels/footprint_checker_for_tests.h"
#include "impl/kernels/linear.h"
#include "impl/kernels/load_batch.h"
#include "impl/kernels/mx_linear.h"
#include "impl/kernels/quantize_activation.h"
#include "impl/kernels/quantize_on_use.h"
#include "impl/kernels/residual_add.h"
#include "impl/kernels/rms_norm.h"
#include "impl/kernels/swiglu.h"

namespace gatherfuzz {
namespace {

class Footprint : public testing::TestWithParam<DType> {
 protected:
  template <class Op>
  void expect_true(const Op& op, std::size_t read_bytes) {
    const FootprintReport report = check_footprint(bench, op);
    EXPECT_TRUE(report.is_true()) << Op::kName << ": " << report.text();
    EXPECT_EQ(report.read_bytes, read_bytes);
    EXPECT_GT(report.write_bytes + report.accumulated, 0u);
    EXPECT_GT(report.other_bytes, 0u);
  }
  std::size_t width() const { return size_of(GetParam()); }
  View<real> random(uint32_t n, float limit = 1.0f) { return bench.random(n, GetParam(), limit); }
  View<real> view(uint32_t n) { return bench.view(n, GetParam()); }
  // Small positive numbers, as inverse roots and sums of exponentials are.
  View<float> statistics(uint32_t n) {
    const View<float> values = bench.random_floats(n);
    for (uint32_t i = 0; i < n; ++i) bench.memory().out<float>(values)[i] = bench.uniform(0.5f) + 1.0f;
    return values;
  }
  KernelBench bench{41};
};

INSTANTIATE_TEST_SUITE_P(Dtypes, Footprint, testing::Values(DType::bf16, DType::f32),
                         [](const auto& test) { return name_of(test.param); });

TEST_P(Footprint, Embedding) {
  expect_true(Embedding{bench.random_tokens(5, 4), random(4 * 3), view(5 * 3), 3}, 5 * 4 + 12 * width());
}
TEST_P(Footprint, EmbeddingBackward) {
  expect_true(EmbeddingBackward{bench.random_tokens(5, 4), random(5 * 3), bench.random(4 * 3, DType::f32), 3},
              5 * 4 + 15 * width());
}
TEST_P(Footprint, RmsNorm) {
  expect_true(RmsNorm{random(3 * 5), random(5), view(3 * 5), bench.view<float>(3)}, 20 * width());
}
TEST_P(Footprint, RmsNormBackward) {
  expect_true(RmsNormBackward{random(3 * 5), random(3 * 5), statistics(3), random(5), view(3 * 5),
                              bench.random(5, DType::f32)},
              35 * width() + 12);
}
TEST_P(Footprint, Linear) {
  expect_true(Linear{random(3 * 5), random(2 * 5), view(3 * 2), 5, 2}, 25 * width());
}
TEST_P(Footprint, LinearDgrad) {
  expect_true(LinearDgrad{random(3 * 2), random(2 * 5), view(3 * 5), 5, 2}, 16 * width());
}
TEST_P(Footprint, LinearWgrad) {
  expect_true(LinearWgrad{random(3 * 2), random(3 * 5), bench.random(2 * 5, DType::f32), 5, 2}, 21 * width());
}
TEST_P(Footprint, Attention) {
  expect_true(Attention{random(6 * 12), view(6 * 4), bench.view<float>(12), bench.view<float>(12), 3, 2},
              72 * width());
}
TEST_P(Footprint, AttentionBackward) {
  const View<real> qkv = random(6 * 12);
  const View<float> max = bench.view<float>(12), sum = bench.view<float>(12);
  Attention{qkv, view(6 * 4), max, sum, 3, 2}.host(bench.memory());
  expect_true(AttentionBackward{qkv, random(6 * 4), max, sum, view(6 * 12), 3, 2}, 96 * width() + 96);
}
TEST_P(Footprint, Swiglu) {
  expect_true(Swiglu{random(3 * 4), view(3 * 2), 2}, 12 * width());
}
TEST_P(Footprint, SwigluBackward) {
  expect_true(SwigluBackward{random(3 * 2), random(3 * 4), view(3 * 4), 2}, 18 * width());
}
TEST_P(Footprint, ResidualAdd) {
  expect_true(ResidualAdd{random(7), random(7), view(7)}, 14 * width());
}
TEST_P(Footprint, CrossEntropy) {
  expect_true(CrossEntropy{random(3 * 4), bench.random_tokens(3, 4), bench.view<float>(1),
                           bench.view<float>(3), bench.view<float>(3)},
              12 * width() + 12);
}
TEST_P(Footprint, CrossEntropyBackward) {
  const View<real> logits = random(3 * 4);
  const View<int32_t> targets = bench.random_tokens(3, 4);
  const View<float> max = bench.view<float>(3), sum = bench.view<float>(3);
  CrossEntropy{logits, targets, bench.view<float>(1), max, sum}.host(bench.memory());
  expect_true(
      CrossEntropyBackward{logits, targets, max, sum, bench.random_floats(1), view(3 * 4), Coefficient{0.5f}},
      12 * width() + 12 + 24 + 4);
}

class MxFootprint : public Footprint {
 protected:
  static constexpr uint32_t kArea = 32 * 32;
  View<e4m3> elements() {
    const View<e4m3> view = bench.view<e4m3>(kArea);
    for (uint32_t i = 0; i < kArea; ++i)
      bench.memory().out<e4m3>(view)[i] = to_e4m3_saturate(bench.uniform(8.0f));
    return view;
  }
  View<e8m0> scales() {
    const View<e8m0> view = bench.view<e8m0>(kArea / 32);
    for (uint32_t i = 0; i < kArea / 32; ++i)
      bench.memory().out<e8m0>(view)[i].bits = static_cast<uint8_t>(120 + bench.below(8));
    return view;
  }
};

TEST_F(MxFootprint, MxLinear) {
  expect_true(MxLinear{elements(), scales(), elements(), scales(), bench.view(kArea, DType::bf16), 32, 32},
              2 * (kArea + kArea / 32));
}
TEST_F(MxFootprint, MxLinearDgrad) {
  expect_true(
      MxLinearDgrad{elements(), scales(), elements(), scales(), bench.view(kArea, DType::bf16), 32, 32},
      2 * (kArea + kArea / 32));
}
TEST_F(MxFootprint, MxLinearWgrad) {
  expect_true(
      MxLinearWgrad{elements(), scales(), elements(), scales(), bench.random(kArea, DType::f32), 32, 32},
      2 * (kArea + kArea / 32));
}
TEST_F(MxFootprint, QuantizeActivation) {
  expect_true(QuantizeActivation{bench.random(kArea, DType::bf16), bench.view<e4m3>(kArea),
                                 bench.view<e8m0>(kArea / 32), bench.view<e4m3>(kArea),
                                 bench.view<e8m0>(kArea / 32), 32},
              2 * kArea);
}
TEST_F(MxFootprint, QuantizeOnUse) {
  expect_true(
      QuantizeOnUse{bench.random(kArea, DType::bf16), bench.view<e4m3>(kArea), bench.view<e8m0>(kArea / 32),
                    bench.view<e4m3>(kArea), bench.view<e8m0>(kArea / 32), 32},
      2 * kArea);
}
TEST_F(MxFootprint, LoadBatch) {
  const Dataset dataset = Dataset::synthetic(50, 2);
  expect_true(LoadBatch{bench.view<int32_t>(24), bench.view<int32_t>(24), &dataset, 1, 2, 3, 8}, 0);
}

}  // namespace
}  // namespace gatherfuzz
