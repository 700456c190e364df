// Where generators get their decisions from. The same generator serves random campaigns, replays and
// exhaustive small scopes: only the Choices differ. By convention the first alternative (0) is the plainest
// one.
#pragma once

#include <cassert>
#include <cstdint>
#include <initializer_list>

namespace gatherfuzz {

class Choices {
 public:
  virtual ~Choices() = default;

  // A number in [0, n); n is at least 1. `what` names the decision, for those who record or enumerate.
  virtual uint64_t below(uint64_t n, const char* what) = 0;
};

// Uniform and independent draws (splitmix64): the same seed gives the same sequence on every machine.
class RandomChoices final : public Choices {
 public:
  explicit RandomChoices(uint64_t seed) : state_(seed) {}

  uint64_t below(uint64_t n, const char* what) override;
  // One draw more, of all 64 bits: two runs that agree on it have drawn equally often.
  uint64_t final_draw() { return next(); }

 private:
  uint64_t next();

  uint64_t state_;
};

// True in `percent` of 100 cases; false is the plainer alternative.
inline bool flip(Choices& choices, int percent, const char* what) {
  return choices.below(100, what) >= static_cast<uint64_t>(100 - percent);
}

// A number in [least, most].
inline int pick_between(Choices& choices, int least, int most, const char* what) {
  return least + static_cast<int>(choices.below(static_cast<uint64_t>(most - least) + 1, what));
}

template <class T>
struct Weighted {
  T value;
  int weight;  // 0: never
};

// One of the values, in proportion to its weight. Works on any range of Weighted.
template <class Range>
auto pick_weighted(Choices& choices, const Range& options, const char* what) {
  uint64_t total = 0;
  for (const auto& option : options) total += static_cast<uint64_t>(option.weight);
  assert(total > 0);
  uint64_t at = choices.below(total, what);
  auto option = options.begin();
  while (at >= static_cast<uint64_t>(option->weight)) at -= static_cast<uint64_t>(option++->weight);
  return option->value;
}
template <class T>
T pick(Choices& choices, std::initializer_list<Weighted<T>> options, const char* what) {
  return pick_weighted(choices, options, what);
}

}  // namespace gatherfuzz
