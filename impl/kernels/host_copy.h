// Copies of floats between a rank's memory and the host's: how a state gets out of a run, and into one. What
// the pointers name must live until the stream has come past the op. Numbers only: `symbolic` has none, so
// that what comes from the host is one term there, and what goes to the host is not written.
#pragma once

#include "impl/runtime/op_type.h"

namespace gatherfuzz {

struct CopyToHost {
  static constexpr const char* kName = "copy_to_host";
  Read<float> source;
  float* target = nullptr;

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

struct CopyFromHost {
  static constexpr const char* kName = "copy_from_host";
  Write<float, Content::any> target;
  const float* source = nullptr;

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

}  // namespace gatherfuzz
