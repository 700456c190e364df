// Ops for tests of the runtimes: their values are small integers, of which symbolic terms are multiples, so
// that one expectation serves every memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "impl/runtime/op_type.h"

namespace gatherfuzz {

inline Term integer_term(int value) {
  return static_cast<Term>(static_cast<int64_t>(value)) * term_of("one");
}

// target = value
struct SetTo {
  static constexpr const char* kName = "set_to";
  Write<float> target;
  int32_t value = 0;

  void host(HostMemory& memory) const {
    std::fill_n(memory.out<float>(target), target.count(), static_cast<float>(value));
  }
  void symbolic(SymbolicMemory& memory) const { memory.assign(target, integer_term(value)); }
};

// target += value
struct AddTo {
  static constexpr const char* kName = "add_to";
  Update<float> target;
  int32_t value = 0;

  void host(HostMemory& memory) const {
    for (uint32_t i = 0; i < target.count(); ++i) memory.out<float>(target)[i] += static_cast<float>(value);
  }
  void symbolic(SymbolicMemory& memory) const { memory.accumulate(target, integer_term(value), kNoLabel, 0); }
};

// target = 3 * source + value, so that orders differ
struct TripleAdd {
  static constexpr const char* kName = "triple_add";
  Read<float> source;
  Write<float> target;
  int32_t value = 0;

  void host(HostMemory& memory) const {
    for (uint32_t i = 0; i < target.count(); ++i)
      memory.out<float>(target)[i] = 3 * memory.in<float>(source)[i] + static_cast<float>(value);
  }
  void symbolic(SymbolicMemory& memory) const {
    map_elements(memory, source, target, [](Term term) { return 3 * term; });
    memory.accumulate(target, integer_term(value), kNoLabel, 0);
  }
};

// source[i] for a host read that decides something: not finite where the source is `value`.
struct PoisonIf {
  static constexpr const char* kName = "poison_if";
  Read<float> source;
  Write<float> flag;
  int32_t value = 0;

  void host(HostMemory& memory) const {
    *memory.out<float>(flag) = *memory.in<float>(source) == static_cast<float>(value) ? 1.0f : 0.0f;
  }
  void symbolic(SymbolicMemory& memory) const {
    memory.assign(flag, term_of("flag"), kNoLabel, memory.digest(source).term == integer_term(value) ? 1 : 0);
  }
};

}  // namespace gatherfuzz
