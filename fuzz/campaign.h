// `gatherfuzz fuzz`: random programs, judged, until one fails or the time is over.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "properties/run.h"

namespace gatherfuzz {

struct CampaignOptions {
  uint64_t runs = 0;      // programs; 0: no limit
  double seconds = 30.0;  // infinity: no limit
  uint64_t seed = 1;
  // The first one runs every program; the others run one in kOtherRuntimesEvery, as real numbers take longer.
  std::vector<RuntimeKind> runtimes;
  std::optional<FaultSpec> fault;  // planted in every program
  std::string out = "gatherfuzz-out";
};

inline constexpr uint64_t kOtherRuntimesEvery = 64;

// Returns the exit code: 1 if a failure was found, 4 if no program ran. Throws InternalError, Interrupted.
int fuzz(const CampaignOptions& options);

// The fault of `drop op=all_gather iteration=2`. Throws UsageError with what was expected.
FaultSpec parse_fault(const std::string& text);
// "90s", "10m", "8h" or a number of seconds. Throws UsageError.
double parse_duration(const std::string& text);

}  // namespace gatherfuzz
