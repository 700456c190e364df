// Dot product and scaled addition of rows, both ascending.
#pragma once

namespace gatherfuzz::reference {

template <typename Real>
Real dot(const Real* a, const Real* b, int size) {
  Real sum = 0;
  for (int i = 0; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

template <typename Real>
void add_multiple(Real* sum, Real factor, const Real* row, int size) {
  for (int i = 0; i < size; ++i) sum[i] += factor * row[i];
}

}  // namespace gatherfuzz::reference
