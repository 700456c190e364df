// Sums along the rows of a matrix, each in ascending column from 0.0f; several rows run side by side, since
// one sum alone waits for every addition.
#pragma once

namespace gatherfuzz {

// sums[row] = sum over col of term(row, col)
template <class Term>
void row_sums(int rows, int cols, float* sums, Term&& term) {
  constexpr int kSideBySide = 8;
  int row = 0;
  for (; row + kSideBySide <= rows; row += kSideBySide) {
    float sum[kSideBySide] = {};
    for (int col = 0; col < cols; ++col)
      for (int i = 0; i < kSideBySide; ++i) sum[i] += term(row + i, col);
    for (int i = 0; i < kSideBySide; ++i) sums[row + i] = sum[i];
  }
  for (; row < rows; ++row) {
    float sum = 0.0f;
    for (int col = 0; col < cols; ++col) sum += term(row, col);
    sums[row] = sum;
  }
}

}  // namespace gatherfuzz
