// The lines of OUT/log.jsonl, as ci/log.schema.json describes them: what a campaign is, its progress, each
// new failure, its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/campaign.h"
#include "fuzz/campaign_counts.h"

namespace gatherfuzz {

// All that a campaign can say of itself at one moment.
struct CampaignFigures {
  double seconds = 0.0;
  CampaignCounts counts;
  uint64_t states = 0;  // of hosts, reached
  uint64_t kept = 0;    // programs
  uint64_t kinds = 0;   // of failures
  uint64_t known = 0;   // kinds that an earlier campaign stored
};

struct LoggedFailure {
  std::string failure_class, signature, runtime, file;
  std::string block;  // as it was told
  uint64_t program = 0;
  bool known = false;  // an earlier campaign had stored it
  double seconds = 0.0;
};

// What a report needs of the past.
struct CampaignPoint {
  double seconds = 0.0;
  uint64_t programs = 0, states = 0;
};
struct CampaignHistory {
  std::vector<CampaignPoint> points;
  std::vector<LoggedFailure> failures;
};

// `seconds` that a resumed campaign begins with.
std::string begin_line(const CampaignOptions& options, double seconds);
std::string progress_line(const CampaignFigures& figures);
std::string failure_line(const LoggedFailure& failure);
std::string end_line(const CampaignFigures& figures, int exit_code);

// What a log says of its last campaign up to the time `seconds`: a resumed one comes again to what was after
// it. Lines of another version say nothing.
CampaignHistory read_history(const std::string& log, double seconds);

}  // namespace gatherfuzz
