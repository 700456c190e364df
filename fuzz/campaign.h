// `gatherfuzz fuzz`: programs, drawn or changed from those that reached something new, are judged until one
// fails or the time is over.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fuzz/check.h"

namespace gatherfuzz {

struct CampaignOptions {
  uint64_t runs = 0;      // programs; 0: no limit
  double seconds = 30.0;  // infinity: no limit
  uint64_t seed = 1;
  // The first one runs every program; the others run one in kOtherRuntimesEvery, as real numbers take longer.
  std::vector<RuntimeKind> runtimes;
  std::optional<FaultSpec> fault;  // planted in every program
  std::vector<FlagSetting> set;    // flags that every program has
  std::string corpus;              // a folder of programs to begin with; empty: none
  bool keep_going = false;         // after a failure; each class and signature is told once
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
