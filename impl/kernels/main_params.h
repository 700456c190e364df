// Ops on the FP32 main params: their initial values, their way into the param buffer, and copies of optimizer
// state.
#pragma once

#include "impl/runtime/op_type.h"

namespace gatherfuzz {

// Terms of main params, for expectations: the initial value of a parameter, and the bf16 cast of any value.
Term initial_main_term(uint64_t seed, uint32_t param);
Term staged_term(Term main, DType dtype);

// Initial value of element `index` of a parameter, before rounding to bf16: `constant` plus a number of mean
// 0 and standard deviation `deviation` (a sum of four uniform numbers drawn from a hash of seed, param and
// index).
float initial_value(uint64_t seed, uint32_t param, uint32_t index, float deviation, float constant);

// Initial main params of one piece of one parameter; the values are bf16 values.
struct InitMainParams {
  static constexpr const char* kName = "init_main_params";
  Write<float, Content::main_param> target;
  uint64_t seed = 0;
  uint32_t param = 0;
  uint32_t first_element = 0;  // of the piece, in the parameter
  float deviation = 0.0f;
  float constant = 0.0f;

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

// Staging: one rank's FP32 shard of a bucket, rounded to the param buffer's dtype, into its part of that
// buffer.
struct CopyMainParams {
  static constexpr const char* kName = "copy_main_params_to_param_buffer";
  Read<float, Content::main_param> source;
  Write<real, Content::staged> target;

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

// Copies optimizer state aside before a warmup, and back.
struct CopyState {
  static constexpr const char* kName = "copy_state";
  Read<raw> source;
  Write<raw, Content::any> target;

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

}  // namespace gatherfuzz
