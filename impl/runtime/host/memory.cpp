#include "impl/runtime/host/memory.h"

#include <cstring>
#include <new>

#include "impl/numerics/clones.h"

namespace gatherfuzz {

namespace {
constexpr std::size_t kChunk = std::size_t{1} << 18;  // floats

GATHERFUZZ_CLONES void widen(const bf16* __restrict__ from, uint32_t n, float* __restrict__ to) {
  for (uint32_t i = 0; i < n; ++i) to[i] = to_float(from[i]);
}

GATHERFUZZ_CLONES void narrow(const float* __restrict__ from, uint32_t n, bf16* __restrict__ to) {
  for (uint32_t i = 0; i < n; ++i) to[i] = to_bf16(from[i]);
}

}  // namespace

HostMemory::Buffer HostMemory::make_buffer(uint32_t bytes, bool zeroed) {
  Buffer buffer;
  buffer.bytes = bytes;
  buffer.data.reset(static_cast<std::byte*>(::operator new[](bytes + 64u, std::align_val_t{64})));
  // What nobody wrote reads as NaN.
  std::memset(buffer.data.get(), zeroed ? 0 : 0xFF, bytes + 64u);
  return buffer;
}

BufferId HostMemory::allocate(uint32_t bytes, bool zeroed) {
  buffers_.push_back(make_buffer(bytes, zeroed));
  return static_cast<BufferId>(buffers_.size() - 1);
}

void HostMemory::allocate_again(BufferId buffer, uint32_t bytes, bool zeroed) {
  buffers_[buffer] = make_buffer(bytes, zeroed);
}

void HostMemory::release(BufferId buffer) {
  buffers_[buffer] = Buffer{};
}

float* HostMemory::scratch(std::size_t n) {
  n = (n + 15) & ~std::size_t{15};
  if (n >
      kChunk) {  // larger than a chunk: a run of chunks cannot hold it, so it gets one of its own at the end
    large_.push_back(std::make_unique_for_overwrite<float[]>(n));
    return large_.back().get();
  }
  std::size_t chunk = scratch_used_ / kChunk;
  if (scratch_used_ % kChunk + n > kChunk) scratch_used_ = ++chunk * kChunk;
  while (chunks_.size() <= chunk) chunks_.push_back(std::make_unique_for_overwrite<float[]>(kChunk));
  float* result = chunks_[chunk].get() + scratch_used_ % kChunk;
  scratch_used_ += n;
  return result;
}

const float* HostMemory::load(const Operand& operand) {
  if (operand.dtype == DType::f32) return in<float>(operand);
  float* values = scratch(operand.count());
  widen(in<bf16>(operand), operand.count(), values);
  return values;
}

float* HostMemory::staging(const Operand& operand) {
  return operand.dtype == DType::f32 ? out<float>(operand) : scratch(operand.count());
}

void HostMemory::store(const Operand& operand, const float* values) {
  const uint32_t n = operand.count();
  if (operand.dtype == DType::f32) {
    float* target = out<float>(operand);
    if (target != values) std::memcpy(target, values, n * sizeof(float));
    return;
  }
  narrow(values, n, out<bf16>(operand));
}

std::vector<std::byte> HostMemory::save(const Operand& operand) const {
  return {data(operand), data(operand) + operand.bytes};
}

void HostMemory::restore(const Operand& operand, const std::vector<std::byte>& saved) {
  std::memcpy(data(operand), saved.data(), saved.size());
}

}  // namespace gatherfuzz
