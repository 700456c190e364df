// Tiny kernels for the facts, one thread each. Every wait in them is bounded.
#pragma once

#include <cuda_runtime_api.h>

namespace gatherfuzz {

// *target += value, neither atomic nor fast: it reads, spins for `microseconds`, then writes, so that two
// that overlap lose an addition.
cudaError_t launch_slow_add(int* target, int value, int microseconds, cudaStream_t stream);
cudaError_t launch_add(int* target, int value, cudaStream_t stream);
cudaError_t launch_copy(const int* from, int* to, cudaStream_t stream);
cudaError_t launch_spin(int microseconds, cudaStream_t stream);

// Waits until *flag is not zero or `microseconds` have passed, then puts what it saw last in *seen.
cudaError_t launch_await(const int* flag, int* seen, int microseconds, cudaStream_t stream);

// *target += 1 by one of three kernels that nothing else launches; `which` is 0, 1 or 2.
cudaError_t launch_unused_before(int which, int* target, cudaStream_t stream);

}  // namespace gatherfuzz
