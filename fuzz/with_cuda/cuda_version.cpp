#include "fuzz/cuda_version.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <fstream>

namespace gatherfuzz {

namespace {

// 13000 is "13.0".
std::string dotted(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// "580.159.04", from a line such as "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04
// ...": CUDA itself only knows which CUDA a driver is for.
std::string kernel_module() {
  std::ifstream in("/proc/driver/nvidia/version");
  for (std::string word; in >> word;) {
    const std::size_t dot = word.find('.');
    if (dot != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos) return word;
  }
  return "";
}

std::string driver() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0) return "none found";
  const std::string module = kernel_module();
  return (module.empty() ? "" : module + ", ") + "for CUDA " + dotted(version);
}

}  // namespace

CudaVersion cuda_version() {
  int runtime = 0;
  const bool runs = cudaRuntimeGetVersion(&runtime) == cudaSuccess;
  return {"compiled with " + dotted(CUDART_VERSION) + ", runtime " + (runs ? dotted(runtime) : "none"),
          "compiled with " + std::to_string(NCCL_MAJOR) + "." + std::to_string(NCCL_MINOR) + "." +
              std::to_string(NCCL_PATCH),
          driver()};
}

}  // namespace gatherfuzz
