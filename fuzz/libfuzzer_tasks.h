// The engine libFuzzer: fuzz targets that run its programs on the first runtime and report them. What it
// keeps lies in OUT/libfuzzer/: corpus/ its inputs, shared by its processes, seeds/ the programs of --corpus,
// job-N.log what it says.
#pragma once

#include <deque>
#include <map>

#include "fuzz/engine_process.h"
#include "fuzz/task_source.h"

namespace gatherfuzz {

// The fuzz target of a runtime, beside this binary. Throws UsageError if there is none.
std::string fuzz_target_of(RuntimeKind runtime);

class LibFuzzerTasks : public TaskSource {
 public:
  // `judged`: the last program of the campaign that is resumed.
  LibFuzzerTasks(const CampaignOptions& options, const CampaignInputs& inputs, MayBegin may_begin,
                 uint64_t judged);

  std::optional<Task> next() override;
  // It draws for itself: what was under way is not resumed.
  std::vector<std::size_t> built_on_after(uint64_t) const override { return {}; }

 private:
  void make_folders(const CampaignInputs& inputs);
  EngineCommand command(std::size_t job) const;
  bool may_read() const { return pool_.size() < window_ && may_begin_(next_number_); }
  void add(EngineProcess::Finished finished);
  Task with_its_death(Task task);

  const CampaignOptions& options_;
  const MayBegin may_begin_;
  const std::string folder_;
  const std::size_t window_;
  WorkerPool pool_;  // for the other runtimes, and for what an engine died of
  uint64_t next_number_;
  bool has_seeds_ = false;
  std::size_t longest_seed_ = 0;
  std::deque<EngineProcess> engines_;
  std::map<uint64_t, Outcome> deaths_;  // of engines, by the program that they ran
};

}  // namespace gatherfuzz
