// Host memory: real bytes, one allocation a buffer, and the views of operands that host kernels compute on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "impl/numerics/bf16.h"
#include "impl/runtime/operand.h"

namespace gatherfuzz {

class HostMemory {
 public:
  explicit HostMemory(int rank = 0) : rank_(rank) { buffers_.resize(1); }

  int rank() const { return rank_; }

  BufferId allocate(uint32_t bytes, bool zeroed);
  void release(BufferId buffer);
  void allocate_again(BufferId buffer, uint32_t bytes, bool zeroed);

  std::byte* data(const Operand& operand) { return buffers_[operand.buffer].data.get() + operand.begin; }
  const std::byte* data(const Operand& operand) const {
    return buffers_[operand.buffer].data.get() + operand.begin;
  }

  template <class T>
  const T* in(const Operand& operand) const {
    return reinterpret_cast<const T*>(data(operand));
  }
  template <class T>
  T* out(const Operand& operand) {
    return reinterpret_cast<T*>(data(operand));
  }

  // The operand's values as FP32: in place where they are FP32, otherwise widened into scratch.
  const float* load(const Operand& operand);
  // FP32 values rounded to the operand's dtype and stored.
  void store(const Operand& operand, const float* values);
  // Where to compute the operand's values in FP32 before `store`: the operand itself if it is FP32, otherwise
  // scratch.
  float* staging(const Operand& operand);

  // Uninitialized scratch of n floats, valid until the op ends.
  float* scratch(std::size_t n);
  void end_op() {
    scratch_used_ = 0;
    large_.clear();
  }

  std::vector<std::byte> save(const Operand& operand) const;
  void restore(const Operand& operand, const std::vector<std::byte>& saved);

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };
  struct Buffer {
    std::unique_ptr<std::byte[], Free> data;
    uint32_t bytes = 0;
  };

  static Buffer make_buffer(uint32_t bytes, bool zeroed);

  int rank_;
  std::vector<Buffer> buffers_;
  std::vector<std::unique_ptr<float[]>> chunks_;
  std::vector<std::unique_ptr<float[]>> large_;  // requests over a chunk, freed when the op ends
  std::size_t scratch_used_ = 0;                 // floats, over all chunks
};

}  // namespace gatherfuzz
