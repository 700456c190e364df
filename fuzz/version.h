// What this binary is.
#pragma once

#include <string>

namespace gatherfuzz {

struct VersionParts {
  std::string commit;  // empty where the sources are no git work tree
  std::string compiler, build_type;
};
VersionParts version_parts();

// "gatherfuzz 0.1.0 (3f2c1aa, g++ 12.2.0, Release)".
std::string version_text();

// That, and a line for each part; what of CUDA, NCCL and a driver the build and this machine have.
std::string full_version_text();

}  // namespace gatherfuzz
