// The built-in engine: programs that CampaignInputs draws, run by worker processes.
#pragma once

#include <deque>

#include "fuzz/task_source.h"

namespace gatherfuzz {

class BuiltinTasks : public TaskSource {
 public:
  BuiltinTasks(const CampaignOptions& options, const CampaignInputs& inputs, MayBegin may_begin,
               const Resumed& resumed);

  std::optional<Task> next() override;
  std::vector<std::size_t> built_on_after(uint64_t judged) const override;

 private:
  Task draw(uint64_t number);

  const CampaignOptions& options_;
  const CampaignInputs& inputs_;
  const MayBegin may_begin_;
  WorkerPool pool_;
  uint64_t next_number_;
  std::deque<KeptProgram> begun_;    // from the one that next() gave last
  std::deque<std::size_t> resumed_;  // of programs that had begun when the state was saved
};

}  // namespace gatherfuzz
