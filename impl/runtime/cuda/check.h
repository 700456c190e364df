// CUDA's and NCCL's answers as errors of the runtime contract.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "impl/runtime/error.h"

namespace gatherfuzz {

// Throws RuntimeError with the error's number and name unless the call succeeded. `what` names the call.
void check(cudaError_t result, const char* what);
void check(ncclResult_t result, const char* what);

}  // namespace gatherfuzz
