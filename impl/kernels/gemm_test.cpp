// The tiled product gives the bits of the triple loop, for shapes that fill tiles and for those that do not.
#include "impl/kernels/gemm.h"

#include <gtest/gtest.h>

#include "impl/kernels/kernel_bench_for_tests.h"

namespace gatherfuzz {
namespace {

std::vector<float> numbers(KernelBench& bench, int n) {
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& value : values) value = bench.uniform(3.0f);
  return values;
}

struct Sizes {
  int m, n, k;
};
constexpr Sizes kSizes[] = {{4, 16, 8}, {8, 32, 32}, {1, 1, 1},   {5, 19, 7},
                            {7, 3, 2},  {3, 21, 0},  {13, 40, 33}};

void compare(bool transposed_a, bool onto) {
  KernelBench bench(11);
  std::size_t compared = 0;
  for (const Sizes& size : kSizes) {
    const int b_stride = size.n + 3;
    const int c_stride = size.n + 2;
    // One more than needed: there is memory to point at where k is 0.
    const std::vector<float> a = numbers(bench, size.m * (size.k + 1));
    const std::vector<float> b = numbers(bench, (size.k + 1) * b_stride);
    const std::vector<float> before = numbers(bench, size.m * c_stride);
    const Strided left = transposed_a ? Strided{a.data(), 1, size.m} : Strided{a.data(), size.k, 1};
    std::vector<float> found = before;
    const Product product{left, b.data(), b_stride, found.data(), c_stride, size.m, size.n, size.k};
    onto ? multiply_onto(product) : multiply(product);
    std::vector<float> expected = before;
    for (int row = 0; row < size.m; ++row)
      for (int col = 0; col < size.n; ++col) {
        float& sum = expected[static_cast<std::size_t>(row * c_stride + col)];
        if (!onto) sum = 0.0f;
        for (int k = 0; k < size.k; ++k)
          sum += left.data[row * left.row_stride + k * left.col_stride] *
                 b[static_cast<std::size_t>(k * b_stride + col)];
      }
    EXPECT_EQ(differing_bits(found, expected), 0u) << size.m << " x " << size.n << " x " << size.k;
    compared += expected.size();
  }
  EXPECT_EQ(compared, 72u + 8 * 34 + 3 + 5 * 21 + 7 * 5 + 3 * 23 + 13 * 42);
}

TEST(Gemm, EqualsTheTripleLoop) {
  compare(false, false);
}
TEST(Gemm, TransposedLeftFactor) {
  compare(true, false);
}
TEST(Gemm, OntoWhatIsThere) {
  compare(false, true);
}

TEST(Gemm, TransposeReachesEveryElement) {
  KernelBench bench(12);
  const std::vector<float> in = numbers(bench, 11 * 9);
  std::vector<float> out(11 * 6);
  transpose(in.data(), 9, 11, 6, out.data());
  for (std::size_t row = 0; row < 11; ++row)
    for (std::size_t col = 0; col < 6; ++col) EXPECT_EQ(out[col * 11 + row], in[row * 9 + col]);
}

}  // namespace
}  // namespace gatherfuzz
