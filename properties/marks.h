// Boundaries of a program that the runner puts on each rank's compute stream, for the oracles.
#pragma once

#include <cstdint>

namespace gatherfuzz {

enum class MarkCode : uint32_t {
  step_begin = 1,  // detail: number of the step in the plan
  step_end,        // detail: number of the step in the plan
  save,            // state aside, in the slot of its detail: 0 for a warmup, else a checkpoint's
  restore,         // state back from a slot: the weights to come are those of the save
  end,             // the program is over
  rerun,           // a batch runs again, without an update
};

}  // namespace gatherfuzz
