// Ops that clear memory or set a scalar input.
#pragma once

#include "impl/runtime/op_type.h"

namespace gatherfuzz {

// Zeroes the whole grad buffer at the start of an iteration.
struct ZeroGradBuffer {
  static constexpr const char* kName = "zero_grad_buffer";
  Write<raw, Content::zero> buffer;

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

// Zeroes a bucket's param range after its values went into the MXFP8 weights: it is gradient memory again.
struct ZeroParamRange {
  static constexpr const char* kName = "zero_param_range";
  Write<raw, Content::zero> range;

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

// Clears scalars (norm bins, found-inf) before they accumulate.
struct ZeroScalars {
  static constexpr const char* kName = "zero_scalars";
  Write<raw, Content::scalar> scalars;

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

// Sets a static input; not 0 only where a test injects a value.
struct SetScalar {
  static constexpr const char* kName = "set_scalar";
  Write<float, Content::scalar> target;
  float value = 0.0f;

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

}  // namespace gatherfuzz
