// State coverage for an engine that counts branches only: the host states of a run (properties/states.h) as
// libFuzzer's extra counters.
#pragma once

#include <cstdint>
#include <span>

namespace gatherfuzz {

// Does nothing in a replayer, nor with GATHERFUZZ_WITHOUT=states in the environment. The engine sets the
// counters to zero before each input.
void count_states(std::span<const uint32_t> states);

}  // namespace gatherfuzz
