// Smaller programs that still fail. One shrinker for campaigns, for `gatherfuzz shrink` and for properties.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <vector>

#include "properties/program.h"

namespace gatherfuzz {

// What a smaller program has less of, the most important first: lines (actions, delays, a twin, flags that
// differ from their defaults), steps and passes, sizes (ranks, layers, microbatches, warmup calls, buckets),
// arguments that differ from their defaults. Every candidate has less, so that shrinking ends.
using ProgramSize = std::array<int, 4>;
ProgramSize size_of_program(const Program& program);

// Smaller programs to try, the boldest first: schedule and delays go first, then runs of actions, single
// actions and pairs, counts, flags, sizes, arguments. `fault` and `expect` lines stay. None is refused before
// it runs, unless the program itself is.
std::vector<Program> simpler(const Program& program);

struct ShrinkLimit {
  uint64_t runs = 2000;
  std::chrono::duration<double> time{20.0};
};

struct Shrunk {
  Program program;     // without comments
  uint64_t runs = 0;   // of still_fails
  bool ended = false;  // nothing simpler fails; otherwise the limit was reached
};

// Takes the first candidate that still fails, until none does or the limit is reached.
Shrunk shrink(const Program& program, const std::function<bool(const Program&)>& still_fails,
              ShrinkLimit limit = {});

}  // namespace gatherfuzz
