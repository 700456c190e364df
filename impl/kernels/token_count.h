// Per-token loss: losses and gradients are sums over the tokens that count, and the number of these, on all
// ranks, divides them in the end.
#pragma once

#include "impl/runtime/op_type.h"

namespace gatherfuzz {

// total += the number of targets that are not masked.
struct CountTokens {
  static constexpr const char* kName = "count_tokens";
  Read<int32_t, Content::batch> targets;
  Update<float, Content::scalar> total;  // one value; exact, as counts are far below 2^24

  void host(HostMemory& memory) const;
  // Adds count_term of the targets.
  void symbolic(SymbolicMemory& memory) const;
};

// values = round(values * (1 / max(tokens, 1))): reduced sums over tokens become the gradients of their mean
// loss.
struct DivideByTokens {
  static constexpr const char* kName = "divide_by_tokens";
  Update<real, Content::reduced> values;
  Read<float, Content::scalar> tokens;  // one value

  void host(HostMemory& memory) const;
  // Multiplies with per_token_factor of the count.
  void symbolic(SymbolicMemory& memory) const;
};

Term count_term(Term targets);
// Odd, as scale_term is.
Term per_token_factor(Term tokens);

}  // namespace gatherfuzz
