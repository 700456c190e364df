// `gatherfuzz fuzz`: programs, drawn or changed from those that reached something new, are judged until one
// fails or the time is over.
//
// Of the engine builtin, program number n depends on the seed, on n, and on what was learnt from programs up
// to number n - 1, or with several jobs up to number n - 64 * jobs: outcomes count in the order of their
// numbers, whichever worker was first. So a campaign is the same each time for the same options, as long as
// it is not the time that ends it. The engine libfuzzer does the same each time with one job only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fuzz/ablation.h"
#include "fuzz/check.h"

namespace gatherfuzz {

struct CampaignSeed {
  uint64_t number = 1;
  std::string text = "1";  // as it was given
};

// What chooses programs, and runs them on the first runtime.
enum class Engine : uint8_t { builtin, libfuzzer };
inline constexpr std::string_view kEngineNames[] = {"builtin", "libfuzzer"};
constexpr std::string_view name_of(Engine engine) {
  return kEngineNames[static_cast<std::size_t>(engine)];
}

struct CampaignOptions {
  Engine engine = Engine::builtin;
  std::optional<uint64_t> runs;  // programs; 0: those of the corpus, on every runtime
  double seconds = 30.0;         // infinity: no limit
  CampaignSeed seed;
  std::size_t jobs = 1;  // processes that run programs
  // The first one runs every program; the others run one in kOtherRuntimesEvery, as real numbers take longer.
  std::vector<RuntimeKind> runtimes;
  std::optional<FaultSpec> fault;  // planted in every program
  std::vector<FlagSetting> set;    // flags that every program has
  std::string corpus;              // a folder of programs to begin with; empty: none
  bool resume = false;             // a campaign that was killed or stopped, from OUT/state
  bool keep_going = false;         // after a failure; each class and signature is told once
  std::string out = "gatherfuzz-out";
  Ablation without;
};

inline constexpr uint64_t kOtherRuntimesEvery = 64;
inline constexpr std::size_t kMostJobs = 256;

// Returns the exit code: 1 if a failure was found, 4 if no program ran. Throws UsageError, InternalError,
// Interrupted; the last two after the summary.
int fuzz(const CampaignOptions& options);

// The fault of `drop op=all_gather iteration=2`. Throws UsageError with what was expected.
FaultSpec parse_fault(const std::string& text);
// The same of these options, to be read by parse_fault; empty without a fault.
std::string fault_text(const CampaignOptions& options);
// Each word is NAME=VALUE. Throws UsageError.
std::vector<FlagSetting> parse_settings(const std::vector<std::string>& words);
// "90s", "10m", "8h" or a number of seconds. Throws UsageError.
double parse_duration(const std::string& text);
// A number, or a commit: 40 hexadecimal digits. Throws UsageError.
CampaignSeed parse_seed(const std::string& text);

}  // namespace gatherfuzz
