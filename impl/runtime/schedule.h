// Which runnable op a drain takes next, where streams and events do not fix the order.
#pragma once

#include <cstdint>

namespace gatherfuzz {

// As issued; the last issued first; drawn; by drawn priorities of streams that change now and then.
enum class Schedule : uint8_t { fifo, reverse, random, pct };

}  // namespace gatherfuzz
