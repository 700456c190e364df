// Where generators get their decisions from. The same generator serves random campaigns, replays and
// exhaustive small scopes: only the Choices differ. By convention the first alternative (0) is the plainest
// one.
#pragma once

#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gatherfuzz {

class Choices {
 public:
  virtual ~Choices() = default;

  // A number in [0, n); n is at least 1. `what` names the decision, for those who record or enumerate.
  virtual uint64_t below(uint64_t n, const char* what) = 0;

  // The index of an alternative, in proportion to its weight; one of weight 0 is never taken.
  virtual std::size_t weighted(std::span<const int> weights, const char* what);
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

// Every sequence of decisions of a small scope, depth first. The scope says of which decisions the
// alternatives are tried, and of how many, the first ones; any other decision takes its first. Weights only
// say what is possible.
//
//   EnumeratedChoices choices({{"actions", 1}, {"action", EnumeratedChoices::kAll}});
//   do use(generate_program(choices)); while (choices.next());
class EnumeratedChoices final : public Choices {
 public:
  static constexpr uint64_t kAll = ~uint64_t{0};
  using Scope = std::map<std::string, uint64_t, std::less<>>;

  explicit EnumeratedChoices(Scope scope) : scope_(std::move(scope)) {}

  uint64_t below(uint64_t n, const char* what) override;
  std::size_t weighted(std::span<const int> weights, const char* what) override;

  // Begins the next sequence, behind a complete one; false after the last, and then it begins anew.
  bool next();

 private:
  struct Decision {
    uint64_t taken;
    uint64_t alternatives;
  };

  Scope scope_;
  std::vector<Decision> path_;
  std::size_t at_ = 0;  // decisions that this sequence has taken
};

// True in `percent` of 100 cases; false is the plainer alternative.
inline bool flip(Choices& choices, int percent, const char* what) {
  const int weights[] = {100 - percent, percent};
  return choices.weighted(weights, what) == 1;
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
  std::vector<int> weights;
  weights.reserve(options.size());
  for (const auto& option : options) weights.push_back(option.weight);
  return (options.begin() + static_cast<std::ptrdiff_t>(choices.weighted(weights, what)))->value;
}
template <class T>
T pick(Choices& choices, std::initializer_list<Weighted<T>> options, const char* what) {
  return pick_weighted(choices, options, what);
}

}  // namespace gatherfuzz
