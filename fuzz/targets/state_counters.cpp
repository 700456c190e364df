#include "fuzz/targets/state_counters.h"

#include "fuzz/targets/environment.h"

namespace gatherfuzz {

#ifdef GATHERFUZZ_STATE_COUNTERS

namespace {

// A long campaign sees some thousands of states: few of them share a counter. The engine looks at all
// counters after each input, so that more would cost time.
constexpr std::size_t kCounters = 1 << 15;
// Only the engine reads them: "used" keeps a compiler from dropping them with all that is written.
[[gnu::used, gnu::section("__libfuzzer_extra_counters")]] uint8_t counters[kCounters];

}  // namespace

void count_states(std::span<const uint32_t> states) {
  if (left_out().states) return;
  for (const uint32_t state : states) counters[state % kCounters] = 1;
}

#else

void count_states(std::span<const uint32_t>) {}

#endif

}  // namespace gatherfuzz
