// Where a campaign's programs come from, and where they run first: the engine.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "fuzz/campaign_inputs.h"
#include "fuzz/worker_pool.h"

namespace gatherfuzz {

class TaskSource {
 public:
  virtual ~TaskSource() = default;
  // The next program in the order of numbers, done; nothing once no more may begin and none is under way.
  // Throws Interrupted, and InternalError if programs cannot be run.
  virtual std::optional<Task> next() = 0;
  // What the programs after number `judged` that have begun were built on, for --resume to begin with them.
  virtual std::vector<std::size_t> built_on_after(uint64_t judged) const = 0;
};

// What is resumed: the last program that was judged, and built_on_after() it.
struct Resumed {
  uint64_t judged = 0;
  std::vector<std::size_t> built_on;
};

// Whether the program of this number may begin: neither --runs nor --time is over.
using MayBegin = std::function<bool(uint64_t number)>;

// Of options.engine. All that is passed by reference must outlive it.
std::unique_ptr<TaskSource> make_task_source(const CampaignOptions& options, const CampaignInputs& inputs,
                                             MayBegin may_begin, const Resumed& resumed);

// The runtimes that this program is to run on.
std::vector<RuntimeKind> runtimes_of(const CampaignOptions& options, uint64_t number);

// How many programs may be under way. With several workers one that is slow, such as the one of
// kOtherRuntimesEvery on host, must not hold up the others.
std::size_t window_of(const CampaignOptions& options);

}  // namespace gatherfuzz
