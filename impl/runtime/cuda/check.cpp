#include "impl/runtime/cuda/check.h"

namespace gatherfuzz {

namespace {
constexpr int kNcclErrors = 10000;  // NCCL's numbers follow here in Error
}

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // it would be reported again by a later launch
  throw RuntimeError(static_cast<Error>(result), std::string(what) + ": " + cudaGetErrorString(result));
}

void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw RuntimeError(static_cast<Error>(kNcclErrors + static_cast<int>(result)),
                     std::string(what) + ": " + ncclGetErrorString(result));
}

}  // namespace gatherfuzz
