// For tests that run on both memories: ops whose values are small integers, of which symbolic terms are
// multiples, so that one expectation serves both.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "impl/runtime/local/world.h"

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

inline View<float> floats(Runtime& runtime, uint32_t count, Fill fill = Fill::zero,
                          const char* name = "floats") {
  return make_view<float>(runtime.allocate(name, count * 4, fill), 0, count);
}

// Whether every element of the view holds the integer.
inline bool holds(World& world, int rank, const View<float>& view, int value) {
  const auto r = static_cast<std::size_t>(rank);
  if (world.memory_kind() == MemoryKind::symbolic) {
    bool same = true;
    world.symbolic()[r].pieces(view, [&](const Segment& s, uint32_t) {
      same = same && s.term == integer_term(value) && s.taint == 0;
    });
    return same;
  }
  const float* data = world.host()[r].in<float>(view);
  return std::all_of(data, data + view.count(), [&](float x) { return x == static_cast<float>(value); });
}

// All that a view holds, to be compared between worlds of one memory.
inline std::vector<uint64_t> contents(World& world, int rank, const Operand& view) {
  std::vector<uint64_t> list;
  const auto r = static_cast<std::size_t>(rank);
  if (world.memory_kind() == MemoryKind::symbolic) {
    world.symbolic()[r].pieces(view, [&](const Segment& s, uint32_t end) {
      list.insert(list.end(), {s.term, s.begin, s.offset, s.taint, end});
    });
  } else {
    const std::byte* bytes = world.host()[r].data(view);
    for (uint32_t i = 0; i < view.bytes; ++i) list.push_back(std::to_integer<uint64_t>(bytes[i]));
  }
  return list;
}

// The error that f throws, and its text; fails the test if it throws none.
inline Error error_of(const std::function<void()>& f, std::string* text = nullptr) {
  try {
    f();
  } catch (const RuntimeError& error) {
    if (text != nullptr) *text = error.what();
    return error.error();
  }
  ADD_FAILURE() << "no error was thrown";
  return Error{};
}

// Tests over both memories.
class BothMemories : public testing::TestWithParam<MemoryKind> {
 protected:
  WorldOptions options(int ranks = 1, Schedule schedule = Schedule::fifo, uint64_t seed = 0) const {
    WorldOptions result;
    result.ranks = ranks;
    result.memory = GetParam();
    result.schedule = schedule;
    result.schedule_seed = seed;
    return result;
  }
};

inline std::string memory_name(const testing::TestParamInfo<MemoryKind>& info) {
  return info.param == MemoryKind::symbolic ? "symbolic" : "host";
}
inline const auto kBothMemories = testing::Values(MemoryKind::symbolic, MemoryKind::host);

}  // namespace gatherfuzz
