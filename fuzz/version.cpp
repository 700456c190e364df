#include "fuzz/version.h"

namespace gatherfuzz {

namespace {

std::string compiler() {
#if defined(__clang__)
  const char* name = "clang ";
  const int numbers[] = {__clang_major__, __clang_minor__, __clang_patchlevel__};
#else
  const char* name = "g++ ";
  const int numbers[] = {__GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__};
#endif
  return name + std::to_string(numbers[0]) + "." + std::to_string(numbers[1]) + "." +
         std::to_string(numbers[2]);
}

}  // namespace

VersionParts version_parts() {
  return {GATHERFUZZ_COMMIT, compiler(), GATHERFUZZ_BUILD_TYPE};
}

std::string version_text() {
  const VersionParts parts = version_parts();
  return "gatherfuzz " GATHERFUZZ_VERSION " (" + (parts.commit.empty() ? "" : parts.commit + ", ") +
         parts.compiler + ", " + parts.build_type + ")";
}

}  // namespace gatherfuzz
