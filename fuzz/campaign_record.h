// What a campaign leaves for people and their scripts: OUT/log.jsonl and OUT/report.html.
#pragma once

#include "fuzz/campaign_lines.h"
#include "fuzz/campaign_log.h"
#include "fuzz/failure.h"

namespace gatherfuzz {

// All but due() throw InternalError if something cannot be written.
class CampaignRecord {
 public:
  explicit CampaignRecord(const CampaignOptions& options)
      : options_(options), log_(options.out + "/log.jsonl") {}

  // `seconds` of the campaign that is resumed, or 0.
  void begin(double seconds);
  // Whether it is time for progress(): each second at first, later more seldom.
  bool due(double seconds) const { return seconds >= next_; }
  void progress(const CampaignFigures& figures);
  // A failure was told.
  void add(const Failure& failure, uint64_t program, bool known, const CampaignFigures& figures);
  void end(const CampaignFigures& figures, int exit_code);

 private:
  void add_point(const CampaignFigures& figures);
  void write_report(const CampaignFigures& figures) const;

  const CampaignOptions& options_;
  CampaignLog log_;
  CampaignHistory history_;
  double next_ = 0.0;
};

}  // namespace gatherfuzz
