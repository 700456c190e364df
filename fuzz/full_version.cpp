// Apart from version.cpp, so that what does not print it is not linked with CUDA.
#include "fuzz/cuda_version.h"
#include "fuzz/version.h"
#include "properties/run.h"

namespace gatherfuzz {

std::string full_version_text() {
  const VersionParts parts = version_parts();
  std::string runtimes;
  for (const std::string_view name : kRuntimeNames)
    runtimes.append(runtimes.empty() ? "" : ", ").append(name);
  const CudaVersion cuda = cuda_version();
  return version_text() + "\ncommit: " + (parts.commit.empty() ? "unknown: no git work tree" : parts.commit) +
         "\ncompiler: " + parts.compiler + "\nbuild type: " + parts.build_type + "\nruntimes: " + runtimes +
         "\ncuda: " + cuda.toolkit + "\nnccl: " + cuda.nccl + "\ndriver: " + cuda.driver;
}

}  // namespace gatherfuzz
