#include "fuzz/task_source.h"

#include "fuzz/builtin_tasks.h"
#include "fuzz/libfuzzer_tasks.h"

namespace gatherfuzz {

std::unique_ptr<TaskSource> make_task_source(const CampaignOptions& options, const CampaignInputs& inputs,
                                             MayBegin may_begin, const Resumed& resumed) {
  if (options.engine == Engine::libfuzzer)
    return std::make_unique<LibFuzzerTasks>(options, inputs, std::move(may_begin), resumed.judged);
  return std::make_unique<BuiltinTasks>(options, inputs, std::move(may_begin), resumed);
}

std::vector<RuntimeKind> runtimes_of(const CampaignOptions& options, uint64_t number) {
  std::vector<RuntimeKind> runtimes;
  for (const RuntimeKind runtime : options.runtimes) {
    if (runtime == options.runtimes.front() || options.runs == 0 || number % kOtherRuntimesEvery == 1)
      runtimes.push_back(runtime);
  }
  return runtimes;
}

std::size_t window_of(const CampaignOptions& options) {
  return options.jobs == 1 ? 1 : kOtherRuntimesEvery * options.jobs;
}

}  // namespace gatherfuzz
