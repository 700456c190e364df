// For tests that run on both memories.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "impl/runtime/integer_ops.h"
#include "impl/runtime/local/holds.h"
#include "impl/runtime/local/world.h"

namespace gatherfuzz {

inline View<float> floats(Runtime& runtime, uint32_t count, Fill fill = Fill::zero,
                          const char* name = "floats") {
  return make_view<float>(runtime.allocate(name, count * 4, fill), 0, count);
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
