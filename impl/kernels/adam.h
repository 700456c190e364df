// Adam on one rank's shard of a bucket, in FP32, each operation rounded once and in this order:
//   g = grad * coefficient;  m = b1*m + (1-b1)*g;  v = b2*v + ((1-b2)*g)*g
//   main = main - lr * ((m/bc1) / (sqrt(v/bc2) + eps) + weight_decay*main),  bc = 1 - b^step
// The decay is AdamW's (Loshchilov and Hutter, "Decoupled Weight Decay Regularization", algorithm 2), in the
// order of the fused Adam of Apex and Transformer Engine with adam_w_mode, which Megatron uses.
// What changes from step to step is read from memory, so that a captured graph cannot freeze it.
#pragma once

#include "impl/runtime/op_type.h"

namespace gatherfuzz {

// What is the same in every step.
struct AdamConstants {
  float beta1 = 0.0f;
  float beta2 = 0.0f;
  float one_minus_beta1 = 0.0f;
  float one_minus_beta2 = 0.0f;
  float eps = 0.0f;
};
AdamConstants adam_constants(double beta1, double beta2, double eps);

// Writes what a step needs of its number, before its Adam: LR, 1 - beta1^step, 1 - beta2^step.
inline constexpr uint32_t kAdamStepScalars = 3;
struct AdamStepScalars {
  static constexpr const char* kName = "adam_step_scalars";
  Write<float, Content::scalar> target;
  Coefficient lr;
  float bias_correction1 = 1.0f;
  float bias_correction2 = 1.0f;

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};
// Without a target.
AdamStepScalars adam_step_scalars(double lr, double beta1, double beta2, int step);

struct AdamTerms {
  Term main = kZeroTerm;
  Term exp_avg = kZeroTerm;
  Term exp_avg_sq = kZeroTerm;
};
Term adam_step_scalars_term(const AdamStepScalars& scalars);
Term adam_scalars_term(const AdamConstants& constants, Term step_scalars);
// What a step makes of one element's terms; all zero (padding) stays zero.
AdamTerms adam_terms(const AdamTerms& before, Term grad, Term coefficient, Term scalars, float weight_decay);

struct Adam {
  static constexpr const char* kName = "adam";
  Update<float, Content::main_param> main;
  Update<float, Content::moment> exp_avg;
  Update<float, Content::moment> exp_avg_sq;
  Read<float, Content::spent> grads;
  Read<float, Content::scalar> coefficient;
  Read<float, Content::scalar> step_scalars;  // as AdamStepScalars leaves them
  AdamConstants constants;
  Coefficient weight_decay{0.0f};

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

}  // namespace gatherfuzz
