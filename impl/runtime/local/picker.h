// Gives each runnable op a priority, by which a drain picks the next one. The same seed and questions give
// the same answers.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "impl/runtime/runtime.h"
#include "impl/runtime/schedule.h"

namespace gatherfuzz {

class Picker {
 public:
  Picker(Schedule schedule, uint64_t seed) : schedule_(schedule), seed_(seed) {}

  // `issue` grows in the order in which the rank issued.
  uint64_t priority(int rank, StreamId stream, uint64_t issue);
  bool coin() { return (next_random() >> 63) != 0; }

 private:
  uint64_t next_random();

  Schedule schedule_;
  uint64_t seed_;
  uint64_t counter_ = 0;
  std::map<std::pair<int, StreamId>, uint64_t> priorities_;  // pct
};

}  // namespace gatherfuzz
