// Gated activation of the feed-forward layer (Shazeer 2020): silu(gate) * up.
#pragma once

#include "impl/runtime/op_type.h"

namespace gatherfuzz {

// With sig = 1 / (1 + exp(-gate)): out = round((gate * sig) * up).
struct Swiglu {
  static constexpr const char* kName = "swiglu";
  Read<real> in;    // [tokens, 2 * ffn]: gate, then up
  Write<real> out;  // [tokens, ffn]
  int32_t ffn = 0;

  void host(HostMemory& memory) const;
};

// dgate = round((dout * up) * (sig * (1 + gate * (1 - sig)))); dup = round(dout * (gate * sig)).
struct SwigluBackward {
  static constexpr const char* kName = "swiglu_backward";
  Read<real> dout;  // [tokens, ffn]
  Read<real> in;    // [tokens, 2 * ffn]
  Write<real> din;  // [tokens, 2 * ffn]
  int32_t ffn = 0;

  void host(HostMemory& memory) const;
};

}  // namespace gatherfuzz
