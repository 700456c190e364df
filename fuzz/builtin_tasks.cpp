#include "fuzz/builtin_tasks.h"

namespace gatherfuzz {

BuiltinTasks::BuiltinTasks(const CampaignOptions& options, const CampaignInputs& inputs, MayBegin may_begin,
                           const Resumed& resumed)
    : options_(options),
      inputs_(inputs),
      may_begin_(std::move(may_begin)),
      pool_(options.jobs, options.out + "/running"),
      next_number_(resumed.judged + 1),
      resumed_(resumed.built_on.begin(), resumed.built_on.end()) {}

std::optional<Task> BuiltinTasks::next() {
  while (pool_.size() < window_of(options_) && may_begin_(next_number_)) pool_.add(draw(next_number_++));
  if (pool_.size() == 0) return std::nullopt;
  Task task = pool_.next();
  while (begun_.front().number < task.number) begun_.pop_front();
  return task;
}

Task BuiltinTasks::draw(uint64_t number) {
  Task task;
  task.number = number;
  task.built_on = inputs_.kept();
  if (!resumed_.empty()) {
    task.built_on = resumed_.front();
    resumed_.pop_front();
  }
  begun_.push_back({number, task.built_on});
  task.program = inputs_.next(number, task.built_on);
  if (options_.fault) task.program.faults = {*options_.fault};
  task.runtimes = runtimes_of(options_, number);
  return task;
}

std::vector<std::size_t> BuiltinTasks::built_on_after(uint64_t judged) const {
  std::vector<std::size_t> built_on;
  for (const KeptProgram& program : begun_)
    if (program.number > judged) built_on.push_back(program.built_on);
  built_on.insert(built_on.end(), resumed_.begin(), resumed_.end());
  return built_on;
}

}  // namespace gatherfuzz
