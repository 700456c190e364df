#include "impl/runtime/local/picker.h"

namespace gatherfuzz {

uint64_t Picker::next_random() {
  return mix(++counter_, seed_);
}

uint64_t Picker::priority(int rank, StreamId stream, uint64_t issue) {
  switch (schedule_) {
    case Schedule::fifo:
      return ~issue;
    case Schedule::reverse:
      return issue + 1;
    case Schedule::random:
      return next_random();
    case Schedule::pct: {
      uint64_t& p = priorities_[{rank, stream}];
      if (p == 0 || next_random() % 16 == 0) p = next_random() | 1;
      return p;
    }
  }
  return 0;
}

}  // namespace gatherfuzz
