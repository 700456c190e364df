// A kernel that does nothing for a while, as a slow kernel or link would hold a stream back.
#pragma once

#include <cuda_runtime_api.h>

namespace gatherfuzz {

// About so long; the launch's error is left for the caller to look at.
void launch_delay(int microseconds, cudaStream_t stream);

}  // namespace gatherfuzz
