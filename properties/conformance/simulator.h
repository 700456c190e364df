// The simulated world as a machine of the conformance cases.
#pragma once

#include "impl/runtime/local/world.h"
#include "properties/conformance/trial.h"

namespace gatherfuzz {

// A world's options for one turn: issue order, its reverse, then drawn orders.
WorldOptions turn_options(MemoryKind memory, int ranks, int turn);

MakeMachine simulator(MemoryKind memory);

}  // namespace gatherfuzz
