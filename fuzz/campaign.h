// `gatherfuzz fuzz`: programs, drawn or changed from those that reached something new, are judged until one
// fails or the time is over.
//
// Program number n depends on the seed, on n, and on what was learnt from programs up to number n - 1, or
// with several jobs up to number n - 64 * jobs: outcomes count in the order of their numbers, whichever
// worker was first. So a campaign is the same each time for the same options, as long as it is not the time
// that ends it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fuzz/check.h"

namespace gatherfuzz {

struct CampaignSeed {
  uint64_t number = 1;
  std::string text = "1";  // as it was given
};

struct CampaignOptions {
  std::optional<uint64_t> runs;  // programs; 0: those of the corpus, on every runtime
  double seconds = 30.0;         // infinity: no limit
  CampaignSeed seed;
  std::size_t jobs = 1;  // worker processes
  // The first one runs every program; the others run one in kOtherRuntimesEvery, as real numbers take longer.
  std::vector<RuntimeKind> runtimes;
  std::optional<FaultSpec> fault;  // planted in every program
  std::vector<FlagSetting> set;    // flags that every program has
  std::string corpus;              // a folder of programs to begin with; empty: none
  bool resume = false;             // a campaign that was killed or stopped, from OUT/state
  bool keep_going = false;         // after a failure; each class and signature is told once
  std::string out = "gatherfuzz-out";
};

inline constexpr uint64_t kOtherRuntimesEvery = 64;
inline constexpr std::size_t kMostJobs = 256;

// Returns the exit code: 1 if a failure was found, 4 if no program ran. Throws UsageError, InternalError,
// Interrupted; the last two after the summary.
int fuzz(const CampaignOptions& options);

// The fault of `drop op=all_gather iteration=2`. Throws UsageError with what was expected.
FaultSpec parse_fault(const std::string& text);
std::string fault_text(const FaultSpec& fault);
// "90s", "10m", "8h" or a number of seconds. Throws UsageError.
double parse_duration(const std::string& text);
// A number, or a commit: 40 hexadecimal digits. Throws UsageError.
CampaignSeed parse_seed(const std::string& text);

}  // namespace gatherfuzz
