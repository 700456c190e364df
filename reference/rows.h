// Sums over rows, all ascending.
#pragma once

#include <algorithm>
#include <cmath>

namespace gatherfuzz::reference {

template <typename Real>
Real dot(const Real* a, const Real* b, int size) {
  Real sum = 0;
  for (int i = 0; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

template <typename Real>
void add_multiple(Real* __restrict__ sum, Real factor, const Real* __restrict__ row, int size) {
  for (int i = 0; i < size; ++i) sum[i] += factor * row[i];
}

// row = exp(row - max) / sum, with sum that of exp(row - max).
template <typename Real>
struct MaxAndSum {
  Real max, sum;
};
template <typename Real>
MaxAndSum<Real> softmax(Real* row, int size) {
  const Real max = *std::max_element(row, row + size);
  Real sum = 0;
  for (int i = 0; i < size; ++i) {
    row[i] = std::exp(row[i] - max);
    sum += row[i];
  }
  for (int i = 0; i < size; ++i) row[i] /= sum;
  return {max, sum};
}

}  // namespace gatherfuzz::reference
