// The sum of squares is exact: against sums of big integers, and whatever its partition.
#include "impl/kernels/grad_norm.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "impl/kernels/kernel_bench_for_tests.h"
#include "impl/runtime/collective.h"
#include "reference/optimizer.h"

namespace gatherfuzz {
namespace {

using Bins = std::vector<uint64_t>;

// An unsigned integer of 640 bits, times 2^-298.
class BigSum {
 public:
  void add(uint64_t value, int shift) {
    for (int bit = 0; bit < 64; ++bit)
      if ((value >> bit & 1) != 0) add_bit(static_cast<std::size_t>(bit + shift));
  }
  // The square of a finite value, by its definition as integer times power of two.
  void add_square_of(float value) {
    int exponent = 0;
    const float fraction = std::frexp(value, &exponent);
    const auto integer = static_cast<int64_t>(std::ldexp(std::fabs(fraction), 24));
    if (integer == 0) return;
    int power = 2 * (exponent - 24) + 298;  // below zero for subnormals, whose low bits are zero
    auto square = static_cast<uint64_t>(integer * integer);
    for (; power < 0; ++power) square >>= 1;
    add(square, power);
  }
  bool operator==(const BigSum&) const = default;

 private:
  void add_bit(std::size_t at) {
    for (; bits_[at]; ++at) bits_[at] = false;
    bits_[at] = true;
  }
  std::vector<bool> bits_ = std::vector<bool>(640);
};

BigSum sum_of(const Bins& bins) {
  BigSum sum;
  for (std::size_t pair = 0; pair < (kNormBins - 1) / 2; ++pair) {
    sum.add(bins[2 * pair], static_cast<int>(8 * pair));
    sum.add(bins[2 * pair + 1], static_cast<int>(8 * pair + 24));
  }
  return sum;
}

// Any finite value: subnormal, small, near one, huge.
float any_float(KernelBench& bench) {
  for (;;) {
    const float value = std::bit_cast<float>(bench.below(0xFFFFFFFFu));
    if (std::isfinite(value)) return value;
  }
}

TEST(GradNorm, BinsHoldTheExactSumOfSquares) {
  KernelBench bench(1);
  Bins bins(kNormBins, 0);
  BigSum expected;
  const auto add = [&](float value) {
    add_square(value, bins.data());
    expected.add_square_of(value);
  };
  for (const float value : {0.0f, -0.0f, 0x1p-149f, -0x1p-149f, 0x7FFFFFp-149f, 0x1p-126f, 1.0f, -1.0f,
                            std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()})
    add(value);
  for (int i = 0; i < 20000; ++i) add(any_float(bench));
  EXPECT_TRUE(sum_of(bins) == expected);
  EXPECT_EQ(bins.back(), 0u);
  add_square(1.0f, bins.data());
  EXPECT_FALSE(sum_of(bins) == expected);
}

TEST(GradNorm, OfOneValueIsItsMagnitude) {
  KernelBench bench(2);
  for (int i = 0; i < 20000; ++i) {
    const float value = i < 100 ? std::bit_cast<float>(static_cast<uint32_t>(i)) : any_float(bench);
    Bins bins(kNormBins, 0);
    add_square(value, bins.data());
    ASSERT_EQ(norm_of(bins.data()), std::fabs(value));
  }
}

TEST(GradNorm, IsWhatTheReferenceFinds) {
  KernelBench bench(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<float> values(1 + bench.below(5000));
    for (float& value : values)
      value = std::ldexp(bench.uniform(1.0f), round - 25 - static_cast<int>(bench.below(30)));
    Bins bins(kNormBins, 0);
    for (const float value : values) add_square(value, bins.data());
    const reference::GlobalNorm expected = reference::global_norm({values});
    ASSERT_GE(norm_of(bins.data()), expected.lower);
    ASSERT_LE(norm_of(bins.data()), expected.upper);
    ASSERT_LE(expected.upper, std::nextafter(expected.lower, HUGE_VALF)) << "the bounds say something";
  }
}

TEST(GradNorm, InfinityAndNanMakeItInfinite) {
  for (const float bad : {HUGE_VALF, -HUGE_VALF, std::numeric_limits<float>::quiet_NaN()}) {
    Bins bins(kNormBins, 0);
    add_square(1.0f, bins.data());
    add_square(bad, bins.data());
    EXPECT_EQ(norm_of(bins.data()), HUGE_VALF);
    EXPECT_EQ(bins.back(), 1u);
  }
}

TEST(GradNorm, TooLargeForAFloatIsInfinite) {
  Bins bins(kNormBins, 0);
  for (int i = 0; i < 4; ++i) add_square(std::numeric_limits<float>::max(), bins.data());
  EXPECT_EQ(norm_of(bins.data()), HUGE_VALF);
}

TEST(GradNorm, OpsComputeWhatTheFunctionsDo) {
  KernelBench bench(4);
  const View<float> grads = bench.random_floats(100);
  const View<uint64_t> bins = bench.view<uint64_t>(kNormBins);
  const View<float> norm = bench.view<float>(1), coefficient = bench.view<float>(1);
  HostMemory& memory = bench.memory();
  std::fill_n(memory.out<uint64_t>(bins), kNormBins, 0);
  AddSquares{grads.slice(0, 30), bins}.host(memory);
  AddSquares{grads.slice(30, 70), bins}.host(memory);
  FinishNorm{bins, norm}.host(memory);
  const float expected = reference::global_norm({bench.floats(grads)}).value;
  EXPECT_EQ(bench.floats(norm)[0], expected);
  int clipped = 0;
  for (const float clip : {0.0f, 0.1f, 1.0f, 3.0f, 100.0f}) {
    ClipCoefficient{norm, coefficient, Coefficient{clip}}.host(memory);
    EXPECT_EQ(bench.floats(coefficient)[0], reference::clip_coefficient(expected, clip));
    clipped += bench.floats(coefficient)[0] < 1.0f ? 1 : 0;
  }
  EXPECT_EQ(clipped, 3);
}

// Symbolic memory of `ranks` ranks, each with bins and a shard of a gradient buffer.
class Shards {
 public:
  explicit Shards(std::size_t ranks) {
    for (std::size_t r = 0; r < ranks; ++r) {
      memories_.emplace_back(static_cast<int>(r));
      grads_ = memories_.back().allocate(kBytes, true);
      bins_ = make_view<uint64_t>(memories_.back().allocate(kNormBins * 8, true), 0, kNormBins);
    }
  }
  // Two params, zeros between and after them.
  static void fill(SymbolicMemory& memory, BufferId buffer) {
    memory.assign(make_view<float>(buffer, 0, 100), term_of("a"));
    memory.assign(make_view<float>(buffer, 512, 200), term_of("b"));
  }
  // The elements between cuts[i] and cuts[i + 1] are added by rank i % ranks.
  Term sum(const std::vector<uint32_t>& cuts) {
    for (SymbolicMemory& memory : memories_) fill(memory, grads_);
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
      AddSquares{make_view<float>(grads_, cuts[i] * 4, cuts[i + 1] - cuts[i]), bins_}.symbolic(
          memories_[i % memories_.size()]);
    AllReduce op;
    op.values = bins_;
    op.count = kNormBins;
    const std::vector<const void*> ops(memories_.size(), &op);
    AllReduce::symbolic_collective(ops, memories_);
    return memories_.back().digest(bins_).term;
  }
  static constexpr uint32_t kElements = 512, kBytes = kElements * 4;

 private:
  std::vector<SymbolicMemory> memories_;
  BufferId grads_ = 0;
  View<uint64_t> bins_;
};

TEST(GradNorm, TermsOfAnyPartitionAreTheSame) {
  const Term expected = square_sum_term(term_of("a"), 0, 400) + square_sum_term(term_of("b"), 0, 800);
  EXPECT_EQ(Shards(1).sum({0, Shards::kElements}), expected);
  KernelBench bench(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint32_t> cuts = {0, Shards::kElements};
    for (uint32_t i = bench.below(8); i > 0; --i) cuts.push_back(bench.below(Shards::kElements));
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    ASSERT_EQ(Shards(1 + bench.below(5)).sum(cuts), expected) << "round " << round;
  }
  EXPECT_NE(Shards(2).sum({0, 99, 100, Shards::kElements - 1}), Shards(2).sum({0, 99}))
      << "a part is left out";
  EXPECT_NE(Shards(1).sum({1, Shards::kElements}), expected);
}

TEST(GradNorm, TermsKeepTaint) {
  SymbolicMemory memory;
  const View<float> grads = make_view<float>(memory.allocate(64, true), 0, 16);
  const View<uint64_t> bins = make_view<uint64_t>(memory.allocate(kNormBins * 8, true), 0, kNormBins);
  const View<float> scalars = make_view<float>(memory.allocate(8, true), 0, 2);
  const View<float> norm = scalars.slice(0, 1), coefficient = scalars.slice(1, 1);
  const auto chain = [&] {
    AddSquares{grads, bins}.symbolic(memory);
    FinishNorm{bins, norm}.symbolic(memory);
    ClipCoefficient{norm, coefficient, Coefficient{1.0f}}.symbolic(memory);
  };
  memory.assign(grads, term_of("a"));
  chain();
  EXPECT_FALSE(memory.tainted(coefficient));
  EXPECT_EQ(memory.digest(norm).term, norm_term(square_sum_term(term_of("a"), 0, 64)));
  EXPECT_EQ(memory.digest(coefficient).term, clip_term(memory.digest(norm).term, 1.0f));
  memory.assign(grads.slice(3, 1), term_of("b"), kNoLabel, 1);
  chain();
  EXPECT_TRUE(memory.tainted(coefficient));
}

}  // namespace
}  // namespace gatherfuzz
