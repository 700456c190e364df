// Ops and other plain structs kept one after another as bytes, each aligned for any type.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace gatherfuzz {

class OpStorage {
 public:
  // Copies a struct and returns where it is, for `at`.
  uint32_t add(const void* bytes, uint32_t size) {
    const uint32_t first = used_;
    used_ += (size + kUnit - 1) / kUnit;
    if (used_ > units_.size()) units_.resize(std::max<std::size_t>({used_, 2 * units_.size(), kLeast}));
    std::memcpy(units_.data() + first, bytes, size);
    return first;
  }
  const std::byte* at(uint32_t first) const {
    return reinterpret_cast<const std::byte*>(units_.data() + first);
  }
  // Keeps the memory.
  void clear() { used_ = 0; }

 private:
  static constexpr uint32_t kUnit = alignof(std::max_align_t);
  static constexpr std::size_t kLeast = 128;  // units
  struct alignas(kUnit) Unit {
    std::byte bytes[kUnit];
  };

  std::vector<Unit> units_;
  uint32_t used_ = 0;
};

}  // namespace gatherfuzz
