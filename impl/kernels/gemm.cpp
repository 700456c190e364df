#include "impl/kernels/gemm.h"

#include <cstring>

// The same code is compiled for SSE2 and for AVX2 and chosen at run time. AVX2 alone brings no fused
// multiply-add, so the results are identical.
#if defined(__x86_64__) && defined(__GNUC__)
#define GATHERFUZZ_HAS_AVX2 1
#endif
#define GATHERFUZZ_INLINE inline __attribute__((always_inline))

namespace gatherfuzz {

namespace {

using Vector4 = float __attribute__((vector_size(16)));

// Vectors are copied one at a time: an array of them whose address is taken would live in memory, not in
// registers.
template <class Vector>
GATHERFUZZ_INLINE void load(Vector& to, const float* from) {
  Vector value;
  std::memcpy(&value, from, sizeof value);
  to = value;
}
template <class Vector>
GATHERFUZZ_INLINE void store(float* to, const Vector& from) {
  const Vector value = from;
  std::memcpy(to, &value, sizeof value);
}

// A tile of `kRows` x `kVectors` vectors of c stays in registers while k runs.
template <class Vector, int kRows, int kVectors>
GATHERFUZZ_INLINE void tile(const Product& p, int row, int col, bool onto) {
  constexpr int kLanes = static_cast<int>(sizeof(Vector) / sizeof(float));
  Vector sum[kRows][kVectors] = {};
  float* c = p.c + row * p.c_stride + col;
  if (onto)
    for (int r = 0; r < kRows; ++r)
      for (int v = 0; v < kVectors; ++v) load(sum[r][v], c + r * p.c_stride + v * kLanes);
  const float* a = p.a.data + row * p.a.row_stride;
  const float* b = p.b + col;
  for (int k = 0; k < p.k; ++k) {
    Vector line[kVectors];
    for (int v = 0; v < kVectors; ++v) load(line[v], b + v * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const float factor = a[r * p.a.row_stride];
      for (int v = 0; v < kVectors; ++v) sum[r][v] += factor * line[v];
    }
    a += p.a.col_stride;
    b += p.b_stride;
  }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) store(c + r * p.c_stride + v * kLanes, sum[r][v]);
}

// One column, for what the vectors leave over.
GATHERFUZZ_INLINE void element(const Product& p, int row, int col, bool onto) {
  float& c = p.c[row * p.c_stride + col];
  float sum = onto ? c : 0.0f;
  const float* a = p.a.data + row * p.a.row_stride;
  for (int k = 0; k < p.k; ++k) sum += a[k * p.a.col_stride] * p.b[k * p.b_stride + col];
  c = sum;
}

template <class Vector, int kRows>
GATHERFUZZ_INLINE void row_band(const Product& p, int row, bool onto) {
  constexpr int kLanes = static_cast<int>(sizeof(Vector) / sizeof(float));
  int col = 0;
  for (; col + 2 * kLanes <= p.n; col += 2 * kLanes) tile<Vector, kRows, 2>(p, row, col, onto);
  for (; col + 4 <= p.n; col += 4) tile<Vector4, kRows, 1>(p, row, col, onto);
  for (; col < p.n; ++col)
    for (int r = 0; r < kRows; ++r) element(p, row + r, col, onto);
}

template <class Vector>
GATHERFUZZ_INLINE void all_tiles(const Product& p, bool onto) {
  int row = 0;
  for (; row + 4 <= p.m; row += 4) row_band<Vector, 4>(p, row, onto);
  for (; row < p.m; ++row) row_band<Vector, 1>(p, row, onto);
}

#ifdef GATHERFUZZ_HAS_AVX2
using Vector8 = float __attribute__((vector_size(32)));

__attribute__((target("avx2"))) void all_tiles_avx2(const Product& p, bool onto) {
  all_tiles<Vector8>(p, onto);
}

bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
}
#endif

void run(const Product& p, bool onto) {
#ifdef GATHERFUZZ_HAS_AVX2
  if (has_avx2()) {
    all_tiles_avx2(p, onto);
    return;
  }
#endif
  all_tiles<Vector4>(p, onto);
}

}  // namespace

void multiply(const Product& product) {
  run(product, false);
}

void multiply_onto(const Product& product) {
  run(product, true);
}

void transpose(const float* in, std::ptrdiff_t in_stride, int rows, int cols, float* out) {
  constexpr int kTile = 8;
  for (int row = 0; row < rows; row += kTile) {
    const int end = row + kTile < rows ? row + kTile : rows;
    for (int col = 0; col < cols; ++col)
      for (int r = row; r < end; ++r)
        out[static_cast<std::ptrdiff_t>(col) * rows + r] = in[r * in_stride + col];
  }
}

}  // namespace gatherfuzz
