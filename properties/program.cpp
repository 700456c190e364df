// What can be said of a program without running it.
#include "properties/program.h"

#include <map>
#include <string_view>

#include "properties/program_lines.h"

namespace gatherfuzz {

namespace {

std::string at_action(size_t index, const Action& action) {
  return "action " + std::to_string(index + 1) + ", " + print_action(action) + ": ";
}

std::optional<Refusal> refusal_of_flags(const Flags& flags) {
  std::string text;
  for (const FlagConflict& conflict : validate(flags)) text += (text.empty() ? "" : "; ") + conflict.text();
  if (text.empty()) return std::nullopt;
  return Refusal{RefusalReason::flags, text};
}

// An infinity that nobody looks for would ruin the model without a word.
std::string injection_problem(const Action& action, const Flags& flags) {
  if (action.rank >= flags.data_parallel_size) {
    return "rank " + std::to_string(action.rank) + " needs a data_parallel_size of more than " +
           std::to_string(flags.data_parallel_size);
  }
  const bool noticed =
      skips_nonfinite(flags) || (action.where == InjectionPlace::grad && flags.check_for_nan_in_grad);
  return noticed ? ""
                 : "needs loss_scale or grad_norm_skip_threshold, or with where=grad check_for_nan_in_grad";
}

std::optional<Refusal> refusal_of_actions(const Program& program) {
  bool in_loop = false, offloaded = false;
  int batches = 0;                        // consumed before the data position
  std::map<std::string_view, int> saved;  // batches at the save
  for (size_t i = 0; i < program.actions.size(); ++i) {
    const Action& action = program.actions[i];
    const auto refused = [&](RefusalReason reason, const std::string& why) {
      return Refusal{reason, at_action(i, action) + why};
    };
    if (action.kind == ActionKind::train) batches += action.count;
    if (action.kind == ActionKind::skip_iteration) ++batches;
    if (action.kind == ActionKind::rerun_forward_backward && batches == 0)
      return refused(RefusalReason::action_order, "no batch came before it");
    if (action.kind == ActionKind::restore_grad_buffers) {
      if (!offloaded) return refused(RefusalReason::action_order, "the grad buffers are not offloaded");
      offloaded = false;
      continue;
    }
    if (offloaded && !spares_grad_buffers(action.kind))
      return refused(RefusalReason::action_order, "the grad buffers are offloaded");
    if (action.kind == ActionKind::load_checkpoint) {
      const auto found = saved.find(action.name);
      if (found == saved.end())
        return refused(RefusalReason::action_order, "no checkpoint of that name has been saved");
      batches = found->second;
    } else if (action.kind == ActionKind::save_checkpoint) {
      saved[action.name] = batches;
      if (saved.size() > kMaxCheckpoints)
        return refused(RefusalReason::limit,
                       "at most " + std::to_string(kMaxCheckpoints) + " checkpoints are kept");
    } else if (action.kind == ActionKind::offload_grad_buffers) {
      offloaded = true;
    } else if (action.kind == ActionKind::start_loop) {
      if (in_loop) return refused(RefusalReason::action_order, "a loop has been started already");
      in_loop = true;
    } else if (action.kind == ActionKind::end_loop) {
      if (!in_loop) return refused(RefusalReason::action_order, "no loop has been started");
      in_loop = false;
    } else if (action.kind == ActionKind::inject_nonfinite) {
      const std::string why = injection_problem(action, program.flags);
      if (!why.empty()) return refused(RefusalReason::flags, why);
    }
  }
  return std::nullopt;
}

std::optional<Refusal> refusal_of_faults(const Program& program) {
  for (const FaultSpec& fault : program.faults) {
    if (!fault.rank || *fault.rank < program.flags.data_parallel_size) continue;
    return Refusal{RefusalReason::flags, print_fault(fault) +
                                             ": the rank needs a data_parallel_size of more than " +
                                             std::to_string(program.flags.data_parallel_size)};
  }
  return std::nullopt;
}

}  // namespace

bool spares_grad_buffers(ActionKind kind) {
  switch (kind) {
    case ActionKind::inject_nonfinite:
    case ActionKind::skip_iteration:
    case ActionKind::set_microbatches:
    case ActionKind::reset_graph:
      return true;
    default:
      return false;
  }
}

int training_steps(const Program& program) {
  int steps = 0;
  for (const Action& action : program.actions) {
    if (action.kind == ActionKind::train || action.kind == ActionKind::warmup) steps += action.count;
  }
  return steps;
}

std::optional<Refusal> refusal_before_run(const Program& program) {
  if (auto refusal = refusal_of_flags(program.flags)) return refusal;
  if (auto refusal = refusal_of_faults(program)) return refusal;
  if (auto refusal = refusal_of_actions(program)) return refusal;
  const int steps = training_steps(program);
  if (steps <= kMaxTrainingSteps && program.actions.size() <= kMaxActions) return std::nullopt;
  return Refusal{RefusalReason::limit, std::to_string(program.actions.size()) + " actions and " +
                                           std::to_string(steps) + " training steps; at most " +
                                           std::to_string(kMaxActions) + " and " +
                                           std::to_string(kMaxTrainingSteps) + " are run"};
}

}  // namespace gatherfuzz
