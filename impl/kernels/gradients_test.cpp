// Ops between backward and optimizer: numbers against plain loops, and the rules of their terms.
#include "impl/kernels/gradients.h"

#include <gtest/gtest.h>

#include <limits>

#include "impl/kernels/kernel_bench_for_tests.h"
#include "impl/runtime/collective.h"
#include "reference/optimizer.h"

namespace gatherfuzz {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class Gradients : public testing::TestWithParam<DType> {
 protected:
  View<real> random(uint32_t n, float limit = 1.0f) { return bench.random(n, GetParam(), limit); }
  KernelBench bench{31};
};
INSTANTIATE_TEST_SUITE_P(Dtypes, Gradients, testing::Values(DType::bf16, DType::f32),
                         [](const auto& test) { return name_of(test.param); });

TEST_P(Gradients, ScaleRoundsToTheGradDtype) {
  for (const int ranks : {2, 3, 5, 8}) {
    const View<real> values = random(301);
    std::vector<float> expected = bench.floats(values);
    reference::scale_before_sum(
        GetParam() == DType::bf16 ? reference::GradPrecision::bf16 : reference::GradPrecision::fp32, expected,
        ranks);
    ScaleGradients{values, Coefficient{1.0f / static_cast<float>(ranks)}}.host(bench.memory());
    bench.memory().end_op();
    EXPECT_EQ(differing_bits(bench.floats(values), expected), 0u) << ranks;
  }
}

TEST_P(Gradients, CopyWidensToFp32) {
  const View<real> source = random(77);
  const View<float> target = bench.view<float>(77);
  CopyReducedGradients{source, target}.host(bench.memory());
  EXPECT_EQ(differing_bits(bench.floats(target), bench.floats(source)), 0u);
}

TEST_P(Gradients, PoisonIsOneInfinity) {
  const View<real> values = random(9);
  std::vector<float> expected = bench.floats(values);
  expected[4] = kInfinity;
  PoisonShard{values.slice(4, 1)}.host(bench.memory());
  bench.memory().end_op();
  EXPECT_EQ(differing_bits(bench.floats(values), expected), 0u);
}

TEST_P(Gradients, CheckFindsOneAmongLargeNumbers) {
  // The sum of these overflows; none of them is infinite.
  const View<real> values = random(1000, 3e38f);
  const View<float> flag = bench.view<float>(1);
  const std::vector<float> numbers = bench.floats(values);
  const auto flagged = [&](std::vector<float> changed) {
    bench.memory().store(values, changed.data());
    *bench.memory().out<float>(flag) = 0.0f;
    CheckGradients{values, flag}.host(bench.memory());
    bench.memory().end_op();
    return bench.floats(flag)[0];
  };
  EXPECT_EQ(flagged(numbers), 0.0f);
  for (const float bad : {kInfinity, -kInfinity, kNan}) {
    for (const std::size_t at : {std::size_t{0}, std::size_t{500}, numbers.size() - 1}) {
      std::vector<float> changed = numbers;
      changed[at] = bad;
      EXPECT_EQ(flagged(changed), 1.0f) << bad << " at " << at;
    }
  }
}

TEST(GradientNumbers, UnscaleMultipliesThenChecks) {
  KernelBench bench(32);
  const View<float> grads = bench.random_floats(100), flag = bench.view<float>(1);
  std::vector<float> expected = bench.floats(grads);
  reference::unscale(expected, 3.0f);
  *bench.memory().out<float>(flag) = 0.0f;
  UnscaleGradients{grads, flag, Coefficient{1.0f / 3.0f}}.host(bench.memory());
  EXPECT_EQ(differing_bits(bench.floats(grads), expected), 0u);
  EXPECT_EQ(bench.floats(flag)[0], 0.0f);
  bench.memory().out<float>(grads)[50] = 3e38f;
  UnscaleGradients{grads, flag, Coefficient{4.0f}}.host(bench.memory());
  EXPECT_EQ(bench.floats(flag)[0], 1.0f) << "it overflowed";
}

TEST(GradientNumbers, AverageLossAddsInOrderAndMultipliesOnce) {
  KernelBench bench(33);
  const View<float> losses = bench.random_floats(5), out = bench.view<float>(1);
  const std::vector<float> l = bench.floats(losses);
  AverageLoss{losses, out, Coefficient{0.1f}}.host(bench.memory());
  EXPECT_EQ(bench.floats(out)[0], ((((l[0] + l[1]) + l[2]) + l[3]) + l[4]) * 0.1f);
}

// Ranks with one bucket of gradients each: a param that all have, one that only rank 0 has, and padding.
class Buckets {
 public:
  explicit Buckets(std::size_t ranks) {
    for (std::size_t r = 0; r < ranks; ++r) {
      SymbolicMemory& memory = memories.emplace_back(static_cast<int>(r));
      const auto n = static_cast<uint32_t>(32 * ranks);
      bucket = make_real_view(memory.allocate(n * 4, true), 0, n, DType::f32);
      memory.assign(bucket.slice(0, 20), mix(term_of("a"), r));
      if (r == 0) memory.assign(bucket.slice(24, 10), term_of("b"));
    }
  }
  void scale(std::size_t rank) {
    ScaleGradients op;
    op.values = bucket;
    op.factor.value = 1.0f / static_cast<float>(memories.size());
    op.symbolic(memories[rank]);
  }
  // What all ranks' own shards hold after the reduction.
  std::vector<Term> reduce(Reduction reduction) {
    std::vector<ReduceScatter> ops;
    std::vector<const void*> pointers;
    const auto ranks = static_cast<int>(memories.size());
    for (int r = 0; r < ranks; ++r) ops.push_back(reduce_scatter_in_place(bucket, r, ranks, reduction));
    for (const ReduceScatter& op : ops) pointers.push_back(&op);
    ReduceScatter::symbolic_collective(pointers, memories);
    std::vector<Term> terms;
    for (std::size_t r = 0; r < memories.size(); ++r)
      memories[r].pieces(ops[r].own, [&](const Segment& s, uint32_t end) {
        terms.insert(terms.end(), {s.term, s.offset, end});
      });
    return terms;
  }
  std::vector<SymbolicMemory> memories;
  View<real> bucket;
};

TEST(GradientTerms, ScaleBeforeTheSumIsTheAverage) {
  for (const std::size_t ranks : {2u, 3u, 8u}) {
    Buckets scaled(ranks), averaged(ranks), never(ranks), twice(ranks), partly(ranks);
    for (std::size_t r = 0; r < ranks; ++r) {
      scaled.scale(r);
      for (int i = 0; i < 2; ++i) twice.scale(r);
      if (r > 0) partly.scale(r);
    }
    const std::vector<Term> expected = averaged.reduce(Reduction::average);
    EXPECT_GE(expected.size(), 3u * ranks);
    EXPECT_EQ(scaled.reduce(Reduction::sum), expected);
    EXPECT_NE(never.reduce(Reduction::sum), expected);
    EXPECT_NE(twice.reduce(Reduction::sum), expected);
    EXPECT_NE(partly.reduce(Reduction::sum), expected);
  }
}

TEST(GradientTerms, ScaleKeepsZeroAndTaint) {
  Buckets b(2);
  b.memories[0].assign(b.bucket.slice(40, 1), term_of("inf"), kNoLabel, 1);
  b.scale(0);
  EXPECT_EQ(b.memories[0].digest(b.bucket.slice(44, 20)).term, kZeroTerm);
  EXPECT_TRUE(b.memories[0].tainted(b.bucket.slice(40, 1)));
  EXPECT_FALSE(b.memories[0].tainted(b.bucket.slice(0, 40)));
  EXPECT_EQ(b.memories[0].digest(b.bucket.slice(0, 20)).term, mix(term_of("a"), 0) * scale_term(0.5f));
}

TEST(GradientTerms, CopyKeepsPositionsOverDtypes) {
  SymbolicMemory memory;
  const View<real> source = make_real_view(memory.allocate(64, true), 0, 32, DType::bf16);
  const View<float> target = make_view<float>(memory.allocate(128, false), 0, 32);
  memory.assign(source.slice(4, 20), term_of("a"), 9, 1);
  CopyReducedGradients{source.slice(8, 24), target.slice(0, 24)}.symbolic(memory);
  std::size_t pieces = 0;
  memory.pieces(target.slice(0, 24), [&](const Segment& s, uint32_t end) {
    EXPECT_EQ(s.term, pieces == 0 ? term_of("a") : kZeroTerm);
    EXPECT_EQ(s.offset, pieces == 0 ? 16u : 0u) << "element 4 of FP32";
    EXPECT_EQ(s.taint, pieces == 0 ? 1 : 0);
    EXPECT_EQ(end, pieces == 0 ? 64u : 96u);
    ++pieces;
  });
  EXPECT_EQ(pieces, 2u);
}

// A clean check leaves its flag as it was, so that all clean runs are alike.
TEST(GradientTerms, ChecksReportTaintAlone) {
  SymbolicMemory memory;
  const View<float> grads = make_view<float>(memory.allocate(64, true), 0, 16);
  const View<float> flags = make_view<float>(memory.allocate(8, true), 0, 2);
  const View<float> nan = flags.slice(0, 1), found_inf = flags.slice(1, 1);
  memory.assign(grads, term_of("a"));
  CheckGradients{grads, nan}.symbolic(memory);
  UnscaleGradients{grads, found_inf, Coefficient{0.5f}}.symbolic(memory);
  EXPECT_EQ(memory.digest(flags).term, kZeroTerm);
  EXPECT_EQ(memory.digest(grads).term, term_of("a") * scale_term(0.5f));
  PoisonShard{grads.slice(3, 1)}.symbolic(memory);
  CheckGradients{grads.slice(0, 3), nan}.symbolic(memory);
  EXPECT_FALSE(memory.tainted(nan));
  CheckGradients{grads, nan}.symbolic(memory);
  UnscaleGradients{grads, found_inf, Coefficient{0.5f}}.symbolic(memory);
  EXPECT_TRUE(memory.tainted(nan));
  EXPECT_TRUE(memory.tainted(found_inf));
}

}  // namespace
}  // namespace gatherfuzz
