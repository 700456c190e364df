#include "fuzz/campaign_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/exit_code.h"
#include "fuzz/files.h"
#include "fuzz/output.h"

namespace gatherfuzz {

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30;

}  // namespace

CampaignLog::~CampaignLog() {
  if (file_ >= 0) close(file_);
}

void CampaignLog::fail(const std::string& reason) const {
  throw InternalError("cannot write " + path_ + ": " + reason);
}

std::string CampaignLog::open() {
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) fail(strerror(errno));
  std::string problem;
  std::optional<std::string> text = read_file(path_, kMostBytes, problem);
  if (!text) fail(problem);
  if (text->size() > kMostBytes) fail("expected at most 1 GiB in it; move it elsewhere");
  const std::size_t whole_lines = text->rfind('\n') + 1;  // none: 0
  if (whole_lines < text->size() && ftruncate(file_, static_cast<off_t>(whole_lines)) != 0)
    fail(strerror(errno));
  text->resize(whole_lines);
  size_ = static_cast<long long>(whole_lines);
  return std::move(*text);
}

void CampaignLog::append(std::string_view line) {
  if (!write_all(file_, std::string(line) + "\n")) {
    const std::string reason = strerror(errno);
    if (ftruncate(file_, size_) != 0) fail(reason + ", and half a line is left in it");
    fail(reason);
  }
  size_ += static_cast<long long>(line.size() + 1);
}

}  // namespace gatherfuzz
