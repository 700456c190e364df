// Memory and seeded numbers for the tests of kernels. Every view lies in a buffer of its own between guard
// bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "impl/numerics/bf16.h"
#include "impl/runtime/host/memory.h"

namespace gatherfuzz {

inline constexpr uint32_t kGuardBytes = 64;

class KernelBench {
 public:
  explicit KernelBench(uint32_t seed) : engine_(seed) {}

  HostMemory& memory() { return memory_; }
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(engine_() % limit); }
  float uniform(float limit) { return limit * (static_cast<float>(engine_() >> 8) * 0x1p-23f - 1.0f); }

  // Views of n elements; the bytes are random, guards included.
  template <class T>
  View<T> view(uint32_t n) {
    return make_view<T>(buffer(n * static_cast<uint32_t>(sizeof(T))), kGuardBytes, n);
  }
  View<real> view(uint32_t n, DType dtype) {
    return make_real_view(buffer(n * static_cast<uint32_t>(size_of(dtype))), kGuardBytes, n, dtype);
  }

  // Values in (-limit, limit), representable in the dtype.
  View<real> random(uint32_t n, DType dtype, float limit = 1.0f) {
    View<real> values = view(n, dtype);
    std::vector<float> numbers(n);
    for (float& number : numbers) number = uniform(limit);
    memory_.store(values, numbers.data());
    return values;
  }
  View<float> random_floats(uint32_t n, float limit = 1.0f) {
    View<float> values = view<float>(n);
    for (uint32_t i = 0; i < n; ++i) memory_.out<float>(values)[i] = uniform(limit);
    return values;
  }
  // Every number below `limit` occurs if there are enough of them.
  View<int32_t> random_tokens(uint32_t n, uint32_t limit) {
    View<int32_t> tokens = view<int32_t>(n);
    for (uint32_t i = 0; i < n; ++i)
      memory_.out<int32_t>(tokens)[i] = static_cast<int32_t>(i < limit ? i : below(limit));
    return tokens;
  }

  std::vector<float> floats(const Operand& operand) {
    std::vector<float> values(operand.count());
    std::memcpy(values.data(), memory_.load(operand), values.size() * sizeof(float));
    memory_.end_op();
    return values;
  }
  std::span<const int32_t> tokens(const View<int32_t>& view) {
    return {memory_.in<int32_t>(view), view.count()};
  }

  // The sizes of the buffers made, by BufferId - 1, guards included.
  const std::vector<uint32_t>& buffers() const { return sizes_; }

 private:
  BufferId buffer(uint32_t bytes) {
    const uint32_t size = bytes + 2 * kGuardBytes;
    const BufferId id = memory_.allocate(size, false);
    sizes_.push_back(size);
    Operand all;
    all.buffer = id;
    all.bytes = size;
    for (uint32_t i = 0; i < size; ++i) memory_.data(all)[i] = static_cast<std::byte>(engine_());
    return id;
  }

  std::mt19937 engine_;
  HostMemory memory_;
  std::vector<uint32_t> sizes_;
};

inline std::vector<float> rounded_to(std::vector<float> values, DType dtype) {
  if (dtype == DType::bf16)
    for (float& value : values) value = to_float(to_bf16(value));
  return values;
}

// How many of the values differ in their bits; all of them if the sizes do.
inline std::size_t differing_bits(const std::vector<float>& found, const std::vector<float>& expected) {
  if (found.size() != expected.size()) return found.size() + expected.size();
  std::size_t n = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    n += std::memcmp(&found[i], &expected[i], sizeof(float)) != 0 ? 1 : 0;
  return n;
}

}  // namespace gatherfuzz
