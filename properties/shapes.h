// Shapes that have hidden faults before, by name: what generators must reach and campaigns count.
#pragma once

#include <span>
#include <string_view>

#include "impl/training/flags.h"

namespace gatherfuzz {

struct InterestingShape {
  std::string_view name;
  bool (*holds)(const Flags&);  // for accepted flags
};

std::span<const InterestingShape> interesting_shapes();

}  // namespace gatherfuzz
