// State coverage: what host state a program went through. One feature is the class of the flag set, the hook
// state, the graph phase, how far gathers are dispatched, the previous action and this one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "impl/training/train_step.h"
#include "properties/program.h"

namespace gatherfuzz {

class StateCoverage {
 public:
  explicit StateCoverage(const Flags& flags);

  // Before an action, and before each training step of one.
  void before(ActionKind action, const TrainStep& step);

  // Sorted, each once; hashes, the same on every machine.
  std::vector<uint32_t> take();

 private:
  uint64_t flags_;
  int previous_ = -1;
  std::vector<uint32_t> features_;
};

// The flags that decide how params are gathered. Coarse on purpose: with every flag in it nearly every
// program would be new, and newness would guide nobody.
uint64_t flag_class(const Flags& flags);

}  // namespace gatherfuzz
