// CUDA kernels of ops. A .cu file beside an op registers what launches its kernel:
//
//   const CudaKernel<SetTo> kSetTo{[](const SetTo& op, const CudaMemory& memory, cudaStream_t stream) {
//     set_to<<<1, 1, 0, stream>>>(memory.out<float>(op.target), op.value);
//   }};
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "impl/runtime/op_type.h"

namespace gatherfuzz {

// Device addresses of one rank's buffers, by BufferId.
class CudaMemory {
 public:
  std::byte* data(const Operand& operand) const { return buffers_[operand.buffer].data + operand.begin; }
  template <class T>
  const T* in(const Operand& operand) const {
    return reinterpret_cast<const T*>(data(operand));
  }
  template <class T>
  T* out(const Operand& operand) const {
    return reinterpret_cast<T*>(data(operand));
  }

  BufferId add(std::byte* data, uint32_t bytes) {
    buffers_.push_back({data, bytes});
    return static_cast<BufferId>(buffers_.size() - 1);
  }
  bool alive(BufferId buffer) const { return buffer < buffers_.size() && buffers_[buffer].data != nullptr; }
  bool is_allocated(const Operand& operand) const {
    return operand.empty() || (alive(operand.buffer) &&
                               uint64_t{operand.begin} + operand.bytes <= buffers_[operand.buffer].bytes);
  }
  // The address, which is no longer the buffer's.
  std::byte* take(BufferId buffer) { return std::exchange(buffers_[buffer].data, nullptr); }
  void put(BufferId buffer, std::byte* data) { buffers_[buffer].data = data; }
  uint32_t bytes(BufferId buffer) const { return buffers_[buffer].bytes; }
  std::size_t size() const { return buffers_.size(); }

 private:
  struct Buffer {
    std::byte* data = nullptr;
    uint32_t bytes = 0;
  };
  std::vector<Buffer> buffers_{1};
};

using LaunchKernel = void (*)(const void* op, const CudaMemory& memory, cudaStream_t stream);

void register_kernel(const OpType& type, LaunchKernel launch);
// Null if none is registered.
LaunchKernel find_kernel(const OpType& type);

template <class Op>
struct CudaKernel {
  using Launch = void (*)(const Op& op, const CudaMemory& memory, cudaStream_t stream);

  explicit CudaKernel(Launch launch) {
    launch_ = launch;
    register_kernel(kOpType<Op>, [](const void* op, const CudaMemory& memory, cudaStream_t stream) {
      launch_(*static_cast<const Op*>(op), memory, stream);
    });
  }

 private:
  static inline Launch launch_ = nullptr;
};

}  // namespace gatherfuzz
