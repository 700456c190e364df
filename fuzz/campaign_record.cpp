#include "fuzz/campaign_record.h"

#include <algorithm>

#include "fuzz/campaign_report.h"
#include "fuzz/failure_block.h"
#include "fuzz/files.h"
#include "fuzz/report.h"

namespace gatherfuzz {

namespace {

constexpr double kSoonest = 1.0, kLatest = 10.0;  // seconds from one progress line to the next
constexpr double kShare = 0.05;                   // of the time that has passed

}  // namespace

void CampaignRecord::begin(double seconds) {
  const std::string before = log_.open();
  if (options_.resume) history_ = read_history(before, seconds);
  if (history_.points.empty()) history_.points.push_back({});
  log_.append(begin_line(options_, seconds));
  next_ = seconds + kSoonest;
}

void CampaignRecord::add_point(const CampaignFigures& figures) {
  history_.points.push_back({figures.seconds, figures.counts.programs, figures.states});
}

void CampaignRecord::progress(const CampaignFigures& figures) {
  next_ = figures.seconds + std::clamp(kShare * figures.seconds, kSoonest, kLatest);
  add_point(figures);
  log_.append(progress_line(figures));
  write_report(figures);
}

void CampaignRecord::add(const Failure& failure, uint64_t program, bool known,
                         const CampaignFigures& figures) {
  const LoggedFailure logged{std::string(name_of(*failure.outcome.failure)),
                             signature_text(failure.outcome),
                             std::string(name_of(failure.runtime)),
                             failure.file,
                             failure_text(failure),
                             program,
                             known,
                             figures.seconds};
  history_.failures.push_back(logged);
  log_.append(failure_line(logged));
  write_report(figures);
}

void CampaignRecord::end(const CampaignFigures& figures, int exit_code) {
  add_point(figures);
  log_.append(end_line(figures, exit_code));
  write_report(figures);
}

void CampaignRecord::write_report(const CampaignFigures& figures) const {
  write_file(options_.out + "/report.html", campaign_report(options_, figures, history_), Sync::no);
}

}  // namespace gatherfuzz
