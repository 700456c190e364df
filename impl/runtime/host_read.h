// A host read as an op: copies one scalar to the host when its stream reaches it.
#pragma once

#include "impl/runtime/runtime.h"

namespace gatherfuzz {

struct HostRead {
  static constexpr const char* kName = "host_read";
  Read<raw> source;
  HostScalar* result = nullptr;

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

}  // namespace gatherfuzz
