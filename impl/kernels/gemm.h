// Matrix products on the host, in FP32. Every element's sum is a plain sum in ascending k that starts at 0.0f
// (or at what `c` holds), each product rounded before it is added: the bits are those of the simple triple
// loop. Speed comes from computing many elements side by side.
#pragma once

#include <cstddef>

namespace gatherfuzz {

// One operand of a product in memory: element (row, col) is data[row * row_stride + col * col_stride].
struct Strided {
  const float* data = nullptr;
  std::ptrdiff_t row_stride = 0;
  std::ptrdiff_t col_stride = 1;
};

// Columns of `b` and `c` are contiguous; strides count elements.
struct Product {
  Strided a;                    // [m, k]
  const float* b = nullptr;     // [k, n]
  std::ptrdiff_t b_stride = 0;  // between rows
  float* c = nullptr;           // [m, n], overlaps neither a nor b
  std::ptrdiff_t c_stride = 0;
  int m = 0;
  int n = 0;
  int k = 0;
};

// c = a * b
void multiply(const Product& product);
// c = c + a * b, each element's sum beginning with what c holds
void multiply_onto(const Product& product);

// out[col, row] = in[row, col]; `in_stride` between rows of `in`, `out` is dense.
void transpose(const float* in, std::ptrdiff_t in_stride, int rows, int cols, float* out);

}  // namespace gatherfuzz
