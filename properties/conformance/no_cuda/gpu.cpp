#include "properties/conformance/gpu.h"

#include <stdexcept>

namespace gatherfuzz {

std::string why_no_gpu() {
  return "built without CUDA (no nvcc was found)";
}

std::string describe_gpu() {
  return "no GPU";
}

MakeMachine gpu() {
  throw std::logic_error(why_no_gpu());
}

std::vector<Fact> all_facts() {
  return {};
}

}  // namespace gatherfuzz
