// Main params, their way to the weights, and fills: numbers against plain loops, and terms.
#include "impl/kernels/main_params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "impl/kernels/fill.h"
#include "impl/kernels/host_copy.h"
#include "impl/kernels/kernel_bench_for_tests.h"
#include "impl/kernels/quantize_on_use.h"
#include "impl/kernels/quantize_weight.h"
#include "reference/formats.h"

namespace gatherfuzz {
namespace {

TEST(MainParams, InitialValuesAreBf16WithTheirMeanAndDeviation) {
  KernelBench bench(1);
  constexpr uint32_t kCount = 20000;
  const View<float> target = bench.view<float>(kCount);
  InitMainParams{target, 3, 5, 0, 0.5f, 2.0f}.host(bench.memory());
  const std::vector<float> values = bench.floats(target);
  double sum = 0, squares = 0;
  for (const float v : values) {
    EXPECT_EQ(to_float(to_bf16(v)), v);
    sum += static_cast<double>(v) - 2.0;
    squares += (static_cast<double>(v) - 2.0) * (static_cast<double>(v) - 2.0);
  }
  EXPECT_NEAR(sum / kCount, 0.0, 5 * 0.5 / std::sqrt(double{kCount}));
  EXPECT_NEAR(std::sqrt(squares / kCount), 0.5, 0.02);
}

// Pieces of a parameter on several ranks are pieces of one sequence; params and seeds have their own.
TEST(MainParams, PiecesAreOfOneSequence) {
  KernelBench bench(2);
  const View<float> whole = bench.view<float>(300), part = bench.view<float>(300);
  InitMainParams{whole, 3, 5, 0, 0.5f, 0.0f}.host(bench.memory());
  InitMainParams{part.slice(0, 111), 3, 5, 0, 0.5f, 0.0f}.host(bench.memory());
  InitMainParams{part.slice(111, 189), 3, 5, 111, 0.5f, 0.0f}.host(bench.memory());
  EXPECT_EQ(differing_bits(bench.floats(part), bench.floats(whole)), 0u);
  for (const auto& [seed, param] : {std::pair{4u, 5u}, std::pair{3u, 6u}}) {
    InitMainParams{part, seed, param, 0, 0.5f, 0.0f}.host(bench.memory());
    EXPECT_GT(differing_bits(bench.floats(part), bench.floats(whole)), 250u);
  }
}

TEST(MainParams, StagingRoundsAndStateIsCopied) {
  KernelBench bench(3);
  const View<float> source = bench.random_floats(500), copy = bench.view<float>(500);
  for (const DType dtype : {DType::bf16, DType::f32}) {
    const View<real> target = bench.view(500, dtype);
    CopyMainParams{source, target}.host(bench.memory());
    bench.memory().end_op();
    std::vector<float> expected = bench.floats(source);
    if (dtype == DType::bf16)
      for (float& value : expected) value = reference::round_to_bf16(value);
    EXPECT_EQ(differing_bits(bench.floats(target), expected), 0u);
  }
  CopyState{source, copy}.host(bench.memory());
  EXPECT_EQ(differing_bits(bench.floats(copy), bench.floats(source)), 0u);
  std::vector<float> outside(500);
  CopyToHost{source, outside.data()}.host(bench.memory());
  EXPECT_EQ(differing_bits(outside, bench.floats(source)), 0u);
  for (float& value : outside) value += 1.0f;
  CopyFromHost{copy, outside.data()}.host(bench.memory());
  EXPECT_EQ(differing_bits(bench.floats(copy), outside), 0u);
}

TEST(MainParams, TermsOfShardsJoinToTheWhole) {
  SymbolicMemory memory;
  const View<float> main = make_view<float>(memory.allocate(400, true), 0, 100);
  for (const DType dtype : {DType::bf16, DType::f32}) {
    const View<real> staged = make_real_view(memory.allocate(400, false), 0, 100, dtype);
    for (const auto& [first, n] : {std::pair{0u, 37u}, std::pair{37u, 43u}})
      InitMainParams{main.slice(first, n), 3, 5, first, 0.5f, 0.0f}.symbolic(memory);
    EXPECT_EQ(memory.digest(main.slice(0, 80)).term, initial_main_term(3, 5));
    CopyMainParams{main.slice(0, 50), staged.slice(0, 50)}.symbolic(memory);
    CopyMainParams{main.slice(50, 50), staged.slice(50, 50)}.symbolic(memory);
    EXPECT_EQ(memory.digest(staged.slice(0, 80)).term, staged_term(initial_main_term(3, 5), dtype));
    EXPECT_EQ(memory.digest(staged.slice(80, 20)).term, kZeroTerm) << "padding";
  }
  EXPECT_NE(staged_term(7, DType::bf16), 7u);
  EXPECT_EQ(staged_term(7, DType::f32), 7u);
  EXPECT_NE(initial_main_term(3, 5), initial_main_term(3, 6));
  EXPECT_NE(initial_main_term(3, 5), initial_main_term(4, 5));
}

// A misplaced piece does not join: it begins at another element.
TEST(MainParams, TermsOfAWrongPieceDoNotJoin) {
  SymbolicMemory memory;
  const View<float> main = make_view<float>(memory.allocate(400, true), 0, 100);
  InitMainParams{main.slice(0, 50), 3, 5, 0, 0.5f, 0.0f}.symbolic(memory);
  InitMainParams{main.slice(50, 50), 3, 5, 51, 0.5f, 0.0f}.symbolic(memory);
  EXPECT_NE(memory.digest(main).term, initial_main_term(3, 5));
}

TEST(Fill, ZeroesExactlyItsRange) {
  KernelBench bench(4);
  const View<float> values = bench.view<float>(30);
  const std::vector<float> before = bench.floats(values);
  ZeroParamRange{View<raw>(values.slice(10, 10))}.host(bench.memory());
  const std::vector<float> after = bench.floats(values);
  for (std::size_t i = 0; i < 30; ++i)
    EXPECT_EQ(
        std::memcmp(&after[i], i >= 10 && i < 20 ? "\0\0\0" : reinterpret_cast<const char*>(&before[i]), 4),
        0);

  SymbolicMemory memory;
  const View<float> terms = make_view<float>(memory.allocate(120, false), 0, 30);
  memory.assign(terms, term_of("a"), 1, 1);
  ZeroParamRange{View<raw>(terms.slice(10, 10))}.symbolic(memory);
  EXPECT_EQ(memory.digest(terms.slice(10, 10)).term, kZeroTerm);
  EXPECT_FALSE(memory.tainted(terms.slice(10, 10)));
  EXPECT_TRUE(memory.tainted(terms.slice(9, 1)) && memory.tainted(terms.slice(20, 1)));
}

TEST(Fill, ScalarsThatAreNotZeroShow) {
  KernelBench bench(5);
  SymbolicMemory memory;
  const View<float> term = make_view<float>(memory.allocate(4, false), 0, 1), number = bench.view<float>(1);
  for (const float value : {0.0f, 2.0f, std::numeric_limits<float>::infinity()}) {
    SetScalar{number, value}.host(bench.memory());
    EXPECT_EQ(bench.floats(number)[0], value);
    SetScalar{term, value}.symbolic(memory);
    EXPECT_EQ(memory.digest(term).term == kZeroTerm, value == 0.0f);
    EXPECT_EQ(memory.tainted(term), value > 3.0f);
  }
}

TEST(Quantize, AWeightStoredWholeAndAGatheredOneGiveTheSamePlanes) {
  KernelBench bench(6);
  constexpr int kRows = 64, kCols = 96, kCount = kRows * kCols;
  const View<real> source = bench.random(kCount, DType::bf16, 3.0f);
  for (const ScaleRounding rounding : {ScaleRounding::up, ScaleRounding::floor}) {
    const View<e4m3> data = bench.view<e4m3>(4 * kCount);
    const View<e8m0> scales = bench.view<e8m0>(4 * kCount / 32);
    HostMemory& memory = bench.memory();
    QuantizeWeight{View<bf16>(source),
                   data.slice(0, kCount),
                   scales.slice(0, kCount / 32),
                   data.slice(kCount, kCount),
                   scales.slice(kCount / 32, kCount / 32),
                   kRows,
                   kCols,
                   rounding}
        .host(memory);
    QuantizeOnUse{source,
                  data.slice(2 * kCount, kCount),
                  scales.slice(2 * kCount / 32, kCount / 32),
                  data.slice(3 * kCount, kCount),
                  scales.slice(3 * kCount / 32, kCount / 32),
                  kCols,
                  rounding}
        .host(memory);
    EXPECT_EQ(std::memcmp(memory.data(data), memory.data(data.slice(2 * kCount, 1)), 2 * kCount), 0);
    EXPECT_EQ(
        std::memcmp(memory.data(scales), memory.data(scales.slice(2 * kCount / 32, 1)), 2 * kCount / 32), 0);
    // Each element within half a step of E4M3 at its block's scale, by the definition of the format.
    const std::vector<float> values = bench.floats(source);
    for (int i = 0; i < kCount; ++i) {
      const auto row = static_cast<uint32_t>(i / kCols), col = static_cast<uint32_t>(i % kCols);
      const uint32_t scale[] = {row * (kCols / 32) + col / 32, kCount / 32 + (row / 32) * kCols + col};
      for (uint32_t plane = 0; plane < 2; ++plane) {
        const float unit = std::ldexp(1.0f, memory.in<e8m0>(scales)[scale[plane]].bits - 127);
        const float found = to_float(memory.in<e4m3>(data)[plane * kCount + static_cast<uint32_t>(i)]) * unit;
        const float limit = std::max(std::fabs(values[static_cast<std::size_t>(i)]) / 16.0f, unit * 0x1p-10f);
        // `floor` saturates the largest values of a block: at most 512 units become 448.
        EXPECT_LE(std::fabs(found - values[static_cast<std::size_t>(i)]),
                  rounding == ScaleRounding::up ? limit : std::max(limit, 64 * unit));
      }
    }
  }
}

TEST(Quantize, TermsAreOnePlaneEach) {
  SymbolicMemory memory;
  constexpr uint32_t kCount = 32 * 32;
  const View<bf16> source = make_view<bf16>(memory.allocate(kCount * 2, true), 0, kCount);
  const BufferId planes = memory.allocate(2 * kCount + kCount / 16, false);
  const View<e4m3> rowwise = make_view<e4m3>(planes, 0, kCount),
                   columnwise = make_view<e4m3>(planes, kCount, kCount);
  const View<e8m0> row_scale = make_view<e8m0>(planes, 2 * kCount, kCount / 32),
                   column_scale = make_view<e8m0>(planes, 2 * kCount + kCount / 32, kCount / 32);
  const QuantizeWeight op{source, rowwise, row_scale, columnwise, column_scale, 32, 32, ScaleRounding::up};
  op.symbolic(memory);
  EXPECT_EQ(memory.digest(rowwise).term, kZeroTerm);
  EXPECT_EQ(memory.digest(columnwise).term, kZeroTerm);
  EXPECT_NE(memory.digest(row_scale).term, kZeroTerm) << "the scale of zeros is a value";
  memory.assign(source, term_of("a"));
  op.symbolic(memory);
  std::vector<Term> terms;
  for (const auto& [view, plane] : {std::pair<Operand, Plane>{rowwise, Plane::rowwise},
                                    {row_scale, Plane::rowwise_scale},
                                    {columnwise, Plane::columnwise},
                                    {column_scale, Plane::columnwise_scale}}) {
    terms.push_back(memory.digest(view).term);
    EXPECT_EQ(terms.back(), quantized_term(term_of("a"), plane, ScaleRounding::up));
    EXPECT_NE(terms.back(), quantized_term(term_of("a"), plane, ScaleRounding::floor));
  }
  std::sort(terms.begin(), terms.end());
  EXPECT_EQ(std::unique(terms.begin(), terms.end()), terms.end());
  // Half a new source: planes of a weight that nobody expects.
  memory.assign(source.slice(0, kCount / 2), term_of("b"));
  op.symbolic(memory);
  EXPECT_NE(memory.digest(rowwise).term, quantized_term(term_of("a"), Plane::rowwise, ScaleRounding::up));
  EXPECT_NE(memory.digest(rowwise).term, quantized_term(term_of("b"), Plane::rowwise, ScaleRounding::up));
}

}  // namespace
}  // namespace gatherfuzz
