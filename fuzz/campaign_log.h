// OUT/log.jsonl: a JSON object a line, in the system's hands once append() returns. Every campaign adds to
// it, beginning with a line that says so.
#pragma once

#include <string>
#include <string_view>

namespace gatherfuzz {

class CampaignLog {
 public:
  explicit CampaignLog(std::string path) : path_(std::move(path)) {}
  ~CampaignLog();
  CampaignLog(const CampaignLog&) = delete;
  CampaignLog& operator=(const CampaignLog&) = delete;

  // Returns what it holds; half a line at its end, which a kill left, is cut off. Throws InternalError.
  std::string open();
  // Throws InternalError and leaves no part of the line, as on a full disk.
  void append(std::string_view line);

 private:
  [[noreturn]] void fail(const std::string& reason) const;

  std::string path_;
  int file_ = -1;
  long long size_ = 0;
};

}  // namespace gatherfuzz
