// A residual connection: forward adds a branch to its input, backward adds the branch's gradient to the
// gradient that passes by.
#pragma once

#include "impl/runtime/op_type.h"

namespace gatherfuzz {

// sum = round(x + branch), elementwise
struct ResidualAdd {
  static constexpr const char* kName = "residual_add";
  Read<real> x;
  Read<real> branch;
  Write<real> sum;

  void host(HostMemory& memory) const;
};

}  // namespace gatherfuzz
