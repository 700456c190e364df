// What of CUDA the build has, and what this machine has for it. `no_cuda/` and `with_cuda/` each say it.
#pragma once

#include <string>

namespace gatherfuzz {

struct CudaVersion {
  std::string toolkit;  // compiled with, and the runtime that runs
  std::string nccl;     // compiled with
  std::string driver;   // found here
};
CudaVersion cuda_version();

}  // namespace gatherfuzz
