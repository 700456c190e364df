#include "properties/conformance/cuda/fact_kernels.h"

namespace gatherfuzz {
namespace {

__device__ unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__device__ void spin(int microseconds) {
  const unsigned long long end = nanoseconds() + 1000ull * microseconds;
  while (nanoseconds() < end) __nanosleep(1000);
}

__global__ void slow_add(int* target, int value, int microseconds) {
  const int before = *static_cast<volatile int*>(target);
  spin(microseconds);
  *static_cast<volatile int*>(target) = before + value;
}

__global__ void copy(const int* from, int* to) {
  *to = *from;
}

__global__ void spin_only(int microseconds) {
  spin(microseconds);
}

__global__ void await(const int* flag, int* seen, int microseconds) {
  const unsigned long long end = nanoseconds() + 1000ull * microseconds;
  int found = 0;
  do {
    found = *static_cast<const volatile int*>(flag);
  } while (found == 0 && nanoseconds() < end);
  *seen = found;
}

template <int which>
__global__ void unused_before(int* target) {
  *target += 1;
}

// cudaLaunchKernel rather than <<<>>>: its result is this launch's own error, not one left by an earlier
// call.
template <typename... Arguments>
cudaError_t launch(void (*kernel)(Arguments...), cudaStream_t stream, Arguments... arguments) {
  void* addresses[] = {&arguments...};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(1), addresses, 0, stream);
}

}  // namespace

cudaError_t launch_slow_add(int* target, int value, int microseconds, cudaStream_t stream) {
  return launch(slow_add, stream, target, value, microseconds);
}

cudaError_t launch_add(int* target, int value, cudaStream_t stream) {
  return launch(slow_add, stream, target, value, 0);
}

cudaError_t launch_copy(const int* from, int* to, cudaStream_t stream) {
  return launch(copy, stream, from, to);
}

cudaError_t launch_spin(int microseconds, cudaStream_t stream) {
  return launch(spin_only, stream, microseconds);
}

cudaError_t launch_await(const int* flag, int* seen, int microseconds, cudaStream_t stream) {
  return launch(await, stream, flag, seen, microseconds);
}

cudaError_t launch_unused_before(int which, int* target, cudaStream_t stream) {
  if (which == 0) return launch(unused_before<0>, stream, target);
  if (which == 1) return launch(unused_before<1>, stream, target);
  return launch(unused_before<2>, stream, target);
}

}  // namespace gatherfuzz
