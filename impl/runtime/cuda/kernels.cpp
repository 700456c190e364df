#include "impl/runtime/cuda/kernels.h"

#include <unordered_map>

namespace gatherfuzz {

namespace {

std::unordered_map<const OpType*, LaunchKernel>& registry() {
  static std::unordered_map<const OpType*, LaunchKernel> kernels;
  return kernels;
}

}  // namespace

void register_kernel(const OpType& type, LaunchKernel launch) {
  registry()[&type] = launch;
}

LaunchKernel find_kernel(const OpType& type) {
  const auto found = registry().find(&type);
  return found == registry().end() ? nullptr : found->second;
}

}  // namespace gatherfuzz
