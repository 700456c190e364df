// Token embedding: rows of a table [vocab, hidden] held whole.
#pragma once

#include "impl/runtime/op_type.h"

namespace gatherfuzz {

// x[t] = table[tokens[t]]; a token outside the table gives a row of NaN.
struct Embedding {
  static constexpr const char* kName = "embedding";
  Read<int32_t, Content::batch> tokens;
  Weight<real, Plane::whole> table;
  Write<real> x;  // [tokens, hidden], of the table's dtype
  int32_t hidden = 0;

  void host(HostMemory& memory) const;
};

// main_grad += a table of zeros to which, for t ascending, dx[t] was added at row tokens[t]. Every row is
// written.
struct EmbeddingBackward {
  static constexpr const char* kName = "embedding_backward";
  Read<int32_t, Content::batch> tokens;
  Read<real> dx;
  Accumulate<real> main_grad;  // [vocab, hidden]
  int32_t hidden = 0;

  void host(HostMemory& memory) const;
};

}  // namespace gatherfuzz
