// Adam on one rank's shard of a bucket, in FP32, each operation rounded once and in this order:
//   g = grad * coefficient;  m = b1*m + (1-b1)*g;  v = b2*v + ((1-b2)*g)*g
//   main = main - lr * ((m/bc1) / (sqrt(v/bc2) + eps)),  bc = 1 - b^step
#pragma once

#include "impl/runtime/op_type.h"

namespace gatherfuzz {

struct AdamScalars {
  float lr = 0.0f;
  float beta1 = 0.0f;
  float beta2 = 0.0f;
  float one_minus_beta1 = 0.0f;
  float one_minus_beta2 = 0.0f;
  float eps = 0.0f;
  float bias_correction1 = 1.0f;
  float bias_correction2 = 1.0f;
};
AdamScalars adam_scalars(double lr, double beta1, double beta2, double eps, int step);

struct AdamTerms {
  Term main = kZeroTerm;
  Term exp_avg = kZeroTerm;
  Term exp_avg_sq = kZeroTerm;
};
Term adam_scalars_term(const AdamScalars& scalars);
// What a step makes of one element's terms; all zero (padding) stays zero.
AdamTerms adam_terms(const AdamTerms& before, Term grad, Term coefficient, Term scalars);

struct Adam {
  static constexpr const char* kName = "adam";
  Update<float, Content::main_param> main;
  Update<float, Content::moment> exp_avg;
  Update<float, Content::moment> exp_avg_sq;
  Read<float, Content::spent> grads;
  Read<float, Content::scalar> coefficient;
  AdamScalars scalars;

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

}  // namespace gatherfuzz
