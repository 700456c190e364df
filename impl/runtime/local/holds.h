// For tests that look into a world's memory.
#pragma once

#include <algorithm>

#include "impl/runtime/integer_ops.h"
#include "impl/runtime/local/world.h"

namespace gatherfuzz {

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

}  // namespace gatherfuzz
