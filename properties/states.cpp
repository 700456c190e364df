#include "properties/states.h"

#include <algorithm>

#include "impl/runtime/symbolic/term.h"

namespace gatherfuzz {

namespace {

enum class GraphPhase : uint64_t { never, none, postponed, gathers, gathers_not };

GraphPhase phase_of(const Flags& flags, const TrainStep& step) {
  if (!captures_full_iteration(flags)) return GraphPhase::never;
  if (step.graph() == 0) return step.capture_postponed() ? GraphPhase::postponed : GraphPhase::none;
  return step.graph_gathers() ? GraphPhase::gathers : GraphPhase::gathers_not;
}

}  // namespace

uint64_t flag_class(const Flags& f) {
  uint64_t result = 0;
  for (const bool check : {f.fp8_recipe == Recipe::mxfp8, f.reuse_grad_buf_for_mxfp8_param_ag,
                           f.overlap_param_gather, f.data_parallel_size > 1})
    result = result * 2 + (check ? 1 : 0);
  return result;
}

StateCoverage::StateCoverage(const Flags& flags) : flags_(flag_class(flags)) {
  features_.reserve(64);
}

void StateCoverage::before(ActionKind action, const TrainStep& step) {
  const ParamGather& gather = *step.parts().gather;
  const std::size_t dispatched = gather.dispatched();
  const uint64_t dispatch = dispatched == 0 ? 0 : dispatched == gather.groups() ? 2 : 1;
  uint64_t state = static_cast<uint64_t>(phase_of(step.flags(), step)) * 3 + dispatch;
  state = state * 2 + (gather.any_outstanding() ? 1 : 0);
  state = state * 2 + (step.hooks_enabled() ? 1 : 0);
  state = state * 64 + static_cast<uint64_t>(previous_ + 1);
  state = state * 64 + static_cast<uint64_t>(action);
  features_.push_back(static_cast<uint32_t>(mix(flags_, state) >> 32));
  previous_ = static_cast<int>(action);
}

std::vector<uint32_t> StateCoverage::take() {
  std::sort(features_.begin(), features_.end());
  features_.erase(std::unique(features_.begin(), features_.end()), features_.end());
  return std::move(features_);
}

}  // namespace gatherfuzz
