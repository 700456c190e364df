#include "properties/choices.h"

namespace gatherfuzz {

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

}  // namespace gatherfuzz
