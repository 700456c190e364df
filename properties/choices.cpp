#include "properties/choices.h"

#include <algorithm>

namespace gatherfuzz {

std::size_t Choices::weighted(std::span<const int> weights, const char* what) {
  uint64_t total = 0;
  for (const int weight : weights) total += static_cast<uint64_t>(weight);
  assert(total > 0);
  uint64_t at = below(total, what);
  std::size_t index = 0;
  while (at >= static_cast<uint64_t>(weights[index])) at -= static_cast<uint64_t>(weights[index++]);
  return index;
}

uint64_t RandomChoices::next() {
  state_ += 0x9e3779b97f4a7c15u;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint64_t RandomChoices::below(uint64_t n, const char*) {
  assert(n > 0);
  // What lies beyond the last multiple of n would favour small numbers: drawn again.
  const uint64_t unfair = (0 - n) % n;
  uint64_t drawn = next();
  while (drawn < unfair) drawn = next();
  return drawn % n;
}

uint64_t EnumeratedChoices::below(uint64_t n, const char* what) {
  assert(n > 0);
  const auto named = scope_.find(what);
  const uint64_t alternatives = named == scope_.end() ? 1 : std::min(n, named->second);
  if (at_ == path_.size()) path_.push_back({0, alternatives});
  assert(path_[at_].alternatives == alternatives && "the same decisions lead to the same question");
  return path_[at_++].taken;
}

std::size_t EnumeratedChoices::weighted(std::span<const int> weights, const char* what) {
  std::vector<std::size_t> possible;
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (weights[i] > 0) possible.push_back(i);
  return possible[below(possible.size(), what)];
}

bool EnumeratedChoices::next() {
  assert(at_ == path_.size() && "the sequence is complete");
  at_ = 0;
  while (!path_.empty() && path_.back().taken + 1 == path_.back().alternatives) path_.pop_back();
  if (path_.empty()) return false;
  ++path_.back().taken;
  return true;
}

}  // namespace gatherfuzz
