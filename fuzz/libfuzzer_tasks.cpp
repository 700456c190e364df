#include "fuzz/libfuzzer_tasks.h"

#include <poll.h>

#include <algorithm>
#include <filesystem>

#include "fuzz/corpus_rules.h"
#include "fuzz/engine_messages.h"
#include "fuzz/exit_code.h"
#include "fuzz/files.h"
#include "impl/runtime/symbolic/term.h"

namespace gatherfuzz {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestInput = 4096;  // bytes, if no seed is longer than half of it

}  // namespace

std::string fuzz_target_of(RuntimeKind runtime) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const std::string target = self.parent_path() / ("program_" + std::string(name_of(runtime)) + "_fuzzer");
  if (exists(target)) return target;
  throw UsageError("--engine libfuzzer: expected the fuzz target " + target +
                   ", found none; build it beside gatherfuzz (cmake --preset fuzz && cmake --build --preset "
                   "fuzz) and run build/fuzz/gatherfuzz");
}

LibFuzzerTasks::LibFuzzerTasks(const CampaignOptions& options, const CampaignInputs& inputs,
                               MayBegin may_begin, uint64_t judged)
    : options_(options),
      may_begin_(std::move(may_begin)),
      folder_(options.out + "/libfuzzer"),
      window_(kOtherRuntimesEvery * options.jobs),
      pool_(options.jobs, options.out + "/running"),
      next_number_(judged + 1) {
  make_folders(inputs);
  for (std::size_t job = 0; job < options.jobs; ++job) engines_.emplace_back(command(job));
}

void LibFuzzerTasks::make_folders(const CampaignInputs& inputs) {
  std::error_code error;
  if (!options_.resume) fs::remove_all(folder_, error);
  if (!error) fs::create_directories(folder_ + "/corpus", error);
  if (error) throw InternalError("cannot prepare " + folder_ + ": " + error.message());
  for (uint64_t number = 1; number <= inputs.seeds(); ++number) {
    const Program seed = inputs.next(number, 0);
    const std::string text = print_program(seed);
    write_file(folder_ + "/seeds/" + hash_text(seed) + ".program", text, Sync::no);
    longest_seed_ = std::max(longest_seed_, text.size());
    has_seeds_ = true;
  }
}

EngineCommand LibFuzzerTasks::command(std::size_t job) const {
  EngineCommand command;
  command.binary = fuzz_target_of(options_.runtimes.front());
  // Deaths are told as the worker process's, so that no signal is caught; and the process waits where the
  // campaign is busy, so that only processor time is limited, by the target.
  command.arguments = {"-timeout=0",         "-report_slow_units=1000000",
                       "-rss_limit_mb=4096", "-handle_segv=0",
                       "-handle_bus=0",      "-handle_abrt=0",
                       "-handle_ill=0",      "-handle_fpe=0",
                       "-handle_int=0",      "-handle_term=0",
                       "-handle_xfsz=0",     "-handle_usr1=0",
                       "-handle_usr2=0"};
  command.arguments.push_back("-max_len=" + std::to_string(std::max(kLongestInput, 2 * longest_seed_)));
  // Alone, it shall do the same each time; others bring something new in at any time.
  command.arguments.push_back(options_.jobs == 1 ? "-reload=0" : "-reload=1");
  command.arguments.push_back("-artifact_prefix=" + folder_ + "/");
  command.arguments.push_back(folder_ + "/corpus");
  if (has_seeds_) command.arguments.push_back(folder_ + "/seeds");
  std::string set;
  for (const auto& [name, value] : options_.set) set += (set.empty() ? "" : " ") + name + "=" + value;
  command.environment = {{kFaultVariable, fault_text(options_)}, {kSetVariable, set}};
  command.seed = mix(mix(options_.seed.number, next_number_), job);
  command.log = folder_ + "/job-" + std::to_string(job + 1) + ".log";
  command.running = options_.out + "/running/engine-" + std::to_string(job + 1) + ".program";
  return command;
}

std::optional<Task> LibFuzzerTasks::next() {
  while (!pool_.front_is_done()) {
    const bool reads = may_read();
    if (!reads && pool_.size() == 0) return std::nullopt;
    std::vector<pollfd> sockets;
    for (EngineProcess& engine : engines_) {
      if (!reads) break;
      engine.start();
      sockets.push_back({engine.socket(), POLLIN, 0});
    }
    pool_.wait(sockets);
    for (std::size_t i = 0; i < sockets.size(); ++i) {
      if (sockets[i].revents == 0 || !may_read()) continue;
      if (auto finished = engines_[i].read(next_number_)) add(std::move(*finished));
    }
  }
  return with_its_death(pool_.next());
}

void LibFuzzerTasks::add(EngineProcess::Finished finished) {
  Task task;
  task.number = next_number_++;
  task.program = std::move(finished.program);
  if (finished.died) {  // does it die elsewhere, too?
    task.runtimes = {options_.runtimes.front()};
    deaths_.emplace(task.number, std::move(finished.outcome));
  } else {
    task.runtimes = runtimes_of(options_, task.number);
    task.outcomes.push_back(std::move(finished.outcome));
  }
  pool_.add(std::move(task));
}

Task LibFuzzerTasks::with_its_death(Task task) {
  if (const auto death = deaths_.find(task.number); death != deaths_.end()) {
    if (task.outcomes.front().verdict != Verdict::fail) task.outcomes = {death->second};
    deaths_.erase(death);
  }
  return task;
}

}  // namespace gatherfuzz
