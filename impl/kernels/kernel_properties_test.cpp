// Kernels over free inputs, as RapidCheck properties: any bits, any shape, any cut, any scalars. Exhaustive
// tests over single values stand beside the kernels.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "impl/kernels/adam.h"
#include "impl/kernels/kernel_bench_for_tests.h"
#include "impl/kernels/quantize_weight.h"
#include "impl/numerics/definitions_for_tests.h"
#include "impl/runtime/collective.h"
#include "reference/optimizer.h"

namespace gatherfuzz {
namespace {

int between(int least, int most) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(least, most + 1));
}
KernelBench any_bench() {
  return KernelBench(*rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<uint32_t>()));
}

// Numbers of either sign over many binades, and zeros.
void fill_with_any(KernelBench& bench, const View<float>& view, int least_exponent, int most_exponent) {
  const auto span = static_cast<uint32_t>(most_exponent - least_exponent + 1);
  for (uint32_t i = 0; i < view.count(); ++i) {
    const int exponent = least_exponent + static_cast<int>(bench.below(span));
    bench.memory().out<float>(view)[i] =
        bench.below(16) == 0 ? 0.0f : std::ldexp(bench.uniform(1.0f), exponent);
  }
}

// Any bits, NaN and infinities with them, or only a few binades, so that a block has elements of all sizes.
std::vector<uint16_t> any_bf16(KernelBench& bench, uint32_t n) {
  const bool any = bench.below(2) == 0;
  const uint32_t least = bench.below(0x7F00);
  std::vector<uint16_t> bits(n);
  for (uint16_t& b : bits)
    b = static_cast<uint16_t>(any ? bench.below(0x10000)
                                  : (least + bench.below(0x500)) % 0x7F80 | bench.below(2) << 15);
  return bits;
}

RC_GTEST_PROP(KernelProperties, QuantizedWeightIsTheDefinitionInBothPlanes, ()) {
  KernelBench bench = any_bench();
  const auto rows = static_cast<uint32_t>(32 * between(1, 3)),
             cols = static_cast<uint32_t>(32 * between(1, 3));
  const ScaleRounding rounding = between(0, 1) == 0 ? ScaleRounding::up : ScaleRounding::floor;
  const uint32_t n = rows * cols;
  const std::vector<uint16_t> bits = any_bf16(bench, n);
  HostMemory& memory = bench.memory();
  const View<bf16> source = bench.view<bf16>(n);
  for (uint32_t i = 0; i < n; ++i) memory.out<bf16>(source)[i] = bf16{bits[i]};
  const View<e4m3> rowwise = bench.view<e4m3>(n), columnwise = bench.view<e4m3>(n);
  const View<e8m0> row_scales = bench.view<e8m0>(n / 32), column_scales = bench.view<e8m0>(n / 32);
  QuantizeWeight{source,
                 rowwise,
                 row_scales,
                 columnwise,
                 column_scales,
                 static_cast<int32_t>(rows),
                 static_cast<int32_t>(cols),
                 rounding}
      .host(memory);
  // Block b of a plane: its elements lie `stride` apart from `first` on.
  const auto check = [&](const View<e4m3>& data, const View<e8m0>& scales, uint32_t b, uint32_t first,
                         uint32_t stride) {
    std::array<uint16_t, 32> block;
    for (uint32_t i = 0; i < 32; ++i) block[i] = bits[first + i * stride];
    const definition::Block expected = definition::quantize(block.data(), rounding == ScaleRounding::up);
    RC_ASSERT(memory.in<e8m0>(scales)[b].bits == expected.scale);
    for (uint32_t i = 0; i < 32; ++i)
      RC_ASSERT(memory.in<e4m3>(data)[first + i * stride].bits == expected.data[i]);
  };
  for (uint32_t b = 0; b < n / 32; ++b) {
    check(rowwise, row_scales, b, b * 32, 1);
    check(columnwise, column_scales, b, b / cols * 32 * cols + b % cols, cols);
  }
}

// Shards that end anywhere, scalars of any size, state of any size: the reference's bits on the whole.
RC_GTEST_PROP(KernelProperties, AdamOfAnyPartitionHasTheReferencesBits, ()) {
  KernelBench bench = any_bench();
  const auto n = static_cast<uint32_t>(between(1, 200));
  const auto cut = static_cast<uint32_t>(between(0, static_cast<int>(n)));
  const View<float> main = bench.view<float>(n), m = bench.view<float>(n), v = bench.view<float>(n);
  const View<float> grads = bench.view<float>(n), coefficient = bench.view<float>(1);
  const View<float> step_scalars = bench.view<float>(kAdamStepScalars);
  fill_with_any(bench, main, -20, 3);
  fill_with_any(bench, m, -30, 0);
  fill_with_any(bench, v, -40, 0);
  fill_with_any(bench, grads, -140, 20);
  HostMemory& memory = bench.memory();
  for (uint32_t i = 0; i < n; ++i) memory.out<float>(v)[i] = std::fabs(memory.in<float>(v)[i]);
  memory.out<float>(coefficient)[0] =
      std::ldexp(1.0f + bench.uniform(0.5f), -static_cast<int>(bench.below(20)));
  const double beta1 = between(0, 999) / 1000.0, beta2 = between(0, 9999) / 10000.0;
  const double lr = std::ldexp(1.0, between(-20, 3)), eps = std::ldexp(1.0, between(-40, 0));
  const auto decay = static_cast<float>(between(0, 100)) / 100.0f;
  const int step = between(1, 1000);
  AdamStepScalars of_step = adam_step_scalars(lr, beta1, beta2, step);
  of_step.target = step_scalars;
  of_step.host(memory);
  std::vector<float> expected = bench.floats(main), expected_m = bench.floats(m),
                     expected_v = bench.floats(v);
  reference::adam({beta1, beta2, static_cast<float>(eps), decay}, {expected, expected_m, expected_v},
                  bench.floats(grads), memory.in<float>(coefficient)[0], static_cast<float>(lr), step);
  for (const auto& [first, count] : {std::pair{0u, cut}, std::pair{cut, n - cut}}) {
    if (count == 0) continue;
    Adam{main.slice(first, count),          m.slice(first, count), v.slice(first, count),
         grads.slice(first, count),         coefficient,           step_scalars,
         adam_constants(beta1, beta2, eps), Coefficient{decay}}
        .host(memory);
  }
  RC_ASSERT(differing_bits(bench.floats(main), expected) == 0u);
  RC_ASSERT(differing_bits(bench.floats(m), expected_m) == 0u);
  RC_ASSERT(differing_bits(bench.floats(v), expected_v) == 0u);
}

// Each rank's shard is the reference's sum of what all ranks hold there; nothing else changes.
template <class T>
void check_reduction(KernelBench& bench, reference::GradPrecision precision) {
  const int ranks = between(1, 8);
  const auto shard = static_cast<uint32_t>(between(1, 12));
  const bool average = between(0, 1) == 1;
  const uint32_t n = static_cast<uint32_t>(ranks) * shard;
  const View<T> bucket = make_view<T>(1, 0, n);
  std::vector<HostMemory> memories;
  std::vector<ReduceScatter> ops;
  std::vector<std::vector<float>> values;
  for (int r = 0; r < ranks; ++r) {
    memories.emplace_back(r).allocate(n * static_cast<uint32_t>(sizeof(T)), true);
    values.emplace_back(n);
    for (float& value : values.back())
      value = reference::round_gradient(precision,
                                        std::ldexp(bench.uniform(1.0f), -static_cast<int>(bench.below(24))));
    memories.back().store(bucket, values.back().data());
    ops.push_back(reduce_scatter_in_place(bucket, r, ranks, average ? Reduction::average : Reduction::sum));
  }
  std::vector<const void*> pointers;
  for (const ReduceScatter& op : ops) pointers.push_back(&op);
  ReduceScatter::host_collective(pointers, memories);
  const std::vector<float> reduced = reference::reduce(precision, values, average);
  for (int r = 0; r < ranks; ++r) {
    HostMemory& memory = memories[static_cast<std::size_t>(r)];
    const float* found = memory.load(bucket);
    for (uint32_t i = 0; i < n; ++i) {
      const bool own = i / shard == static_cast<uint32_t>(r);
      RC_ASSERT(found[i] == (own ? reduced[i] : values[static_cast<std::size_t>(r)][i]));
    }
    memory.end_op();
  }
}

RC_GTEST_PROP(KernelProperties, ReduceScatterIsTheReferencesSum, ()) {
  KernelBench bench = any_bench();
  check_reduction<float>(bench, reference::GradPrecision::fp32);
  check_reduction<bf16>(bench, reference::GradPrecision::bf16);
}

}  // namespace
}  // namespace gatherfuzz
