#include "fuzz/cuda_version.h"

namespace gatherfuzz {

CudaVersion cuda_version() {
  return {"not in this build", "not in this build", "not looked for"};
}

}  // namespace gatherfuzz
