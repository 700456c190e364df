// OUT/state: what a campaign needs to go on after it was killed. Written once a second, and read by --resume.
//
// Two lines: a JSON object, and "checksum " with 16 hexadecimal digits over the bytes before. A file that is
// not exactly that is refused.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/campaign_counts.h"
#include "fuzz/campaign_inputs.h"

namespace gatherfuzz {

// Options that a resumed campaign must have as well: name and value.
using Settings = std::vector<std::pair<std::string, std::string>>;

struct CampaignState {
  Settings settings;
  double seconds = 0.0;
  CampaignCounts counts;
  std::vector<KeptProgram> kept;
  std::vector<uint32_t> states;
  std::vector<std::size_t> built_on;  // of the programs under way
  std::set<std::string> kinds;        // of failures
  uint64_t known = 0;                 // kinds that an earlier campaign stored
};

std::string print_state(const CampaignState& state);
// Throws UsageError with what is wrong.
CampaignState parse_state(const std::string& text);

// Throws UsageError that names the first option that differs.
void require_same_settings(const Settings& before, const Settings& now);

}  // namespace gatherfuzz
