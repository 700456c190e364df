// The kernels of integer_ops.h, and the spin that delays a stream.
#include "impl/runtime/cuda/delay.h"
#include "impl/runtime/cuda/kernels.h"
#include "impl/runtime/integer_ops.h"

namespace gatherfuzz {

namespace {

__global__ void set_to(float* target, uint32_t n, float value) {
  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) target[i] = value;
}

__global__ void add_to(float* target, uint32_t n, float value) {
  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) target[i] += value;
}

__global__ void triple_add(const float* source, float* target, uint32_t n, float value) {
  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
    target[i] = __fadd_rn(__fmul_rn(3.0f, source[i]), value);
}

__global__ void poison_if(const float* source, float* flag, float value) {
  *flag = *source == value ? 1.0f : 0.0f;
}

// Nanoseconds; %globaltimer ticks coarsely, clock64 at about 2 GHz at most.
__global__ void spin(long long nanoseconds) {
  const long long start = clock64();
  while (clock64() - start < 2 * nanoseconds) {
  }
}

constexpr int kThreads = 32;

const CudaKernel<SetTo> kSetTo{[](const SetTo& op, const CudaMemory& memory, cudaStream_t stream) {
  set_to<<<1, kThreads, 0, stream>>>(memory.out<float>(op.target), op.target.count(),
                                     static_cast<float>(op.value));
}};
const CudaKernel<AddTo> kAddTo{[](const AddTo& op, const CudaMemory& memory, cudaStream_t stream) {
  add_to<<<1, kThreads, 0, stream>>>(memory.out<float>(op.target), op.target.count(),
                                     static_cast<float>(op.value));
}};
const CudaKernel<TripleAdd> kTripleAdd{
    [](const TripleAdd& op, const CudaMemory& memory, cudaStream_t stream) {
      triple_add<<<1, kThreads, 0, stream>>>(memory.in<float>(op.source), memory.out<float>(op.target),
                                             op.target.count(), static_cast<float>(op.value));
    }};
const CudaKernel<PoisonIf> kPoisonIf{[](const PoisonIf& op, const CudaMemory& memory, cudaStream_t stream) {
  poison_if<<<1, 1, 0, stream>>>(memory.in<float>(op.source), memory.out<float>(op.flag),
                                 static_cast<float>(op.value));
}};

}  // namespace

void launch_delay(int microseconds, cudaStream_t stream) {
  spin<<<1, 1, 0, stream>>>(1000LL * microseconds);
}

}  // namespace gatherfuzz
