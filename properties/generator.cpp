// Actions and whole programs.
#include "properties/generator.h"

#include <map>

#include "properties/plan.h"
#include "properties/program_lines.h"

namespace gatherfuzz {

namespace {

constexpr int kDeliberateRefusalPercent = 6;

bool trains(ActionKind kind) {
  return kind == ActionKind::train || kind == ActionKind::warmup;
}

// Actions of one program, with what the program likes.
class ActionWriter {
 public:
  ActionWriter(Choices& choices, const Flags& flags) : choices_(choices), flags_(flags) {
    draw_weights();
    // With only the check to meet it, an injection ends the run.
    const bool refusal =
        flags.check_for_nan_in_grad && flip(choices, kDeliberateRefusalPercent, "deliberate refusal");
    may_inject_grad_ = refusal || (skips_nonfinite(flags) && !flags.check_for_nan_in_grad);
    may_inject_shard_ = skips_nonfinite(flags);
  }

  std::vector<Action> write() {
    const int count = pick_between(choices_, 3, 17, "actions");
    while (static_cast<int>(actions_.size()) < count) append(draw_kind());
    if (offloaded_) append(ActionKind::restore_grad_buffers);
    if (!trains_somewhere()) append(ActionKind::train);
    share_out_steps();
    return std::move(actions_);
  }

 private:
  // Swarm: each action is rare, usual or missing; training is never missing.
  void draw_weights() {
    for (const ActionInfo& info : action_table()) {
      const int usual = info.kind == ActionKind::train ? 12 : 4;
      const int rare = info.kind == ActionKind::train ? 6 : 1;
      const int missing = info.kind == ActionKind::train ? 6 : 0;
      weights_.push_back(
          {info.kind, pick<int>(choices_, {{usual, 40}, {rare, 30}, {missing, 30}}, "swarm: action")});
    }
  }

  bool legal(ActionKind kind) const {
    if (kind == ActionKind::restore_grad_buffers) return offloaded_;
    if (offloaded_ && !spares_grad_buffers(kind)) return false;
    if (kind == ActionKind::rerun_forward_backward) return batches_ > 0;
    if (kind == ActionKind::start_loop) return !in_loop_;
    if (kind == ActionKind::end_loop) return in_loop_;
    if (kind == ActionKind::load_checkpoint) return !saved_.empty();
    if (kind == ActionKind::inject_nonfinite) return may_inject_grad_ || may_inject_shard_;
    return true;
  }

  ActionKind draw_kind() {
    std::vector<Weighted<ActionKind>> now = weights_;
    for (Weighted<ActionKind>& option : now) {
      if (!legal(option.value)) option.weight = 0;
      // As training is otherwise, this is never missing: else there might be nothing to draw.
      else if (option.value == ActionKind::restore_grad_buffers)
        option.weight = 6;
    }
    return pick_weighted(choices_, now, "action");
  }

  void append(ActionKind kind) {
    if (kind == ActionKind::train || kind == ActionKind::skip_iteration) ++batches_;
    Action action;
    action.kind = kind;
    switch (kind) {
      case ActionKind::train:
      case ActionKind::warmup:
        action.count = 1;  // share_out_steps adds the others
        break;
      case ActionKind::start_loop:
        in_loop_ = true;
        action.hooks_on = flip(choices_, 25, "hooks");
        break;
      case ActionKind::end_loop:
        in_loop_ = false;
        action.keep_graph = !flip(choices_, 40, "keep_graph");
        break;
      case ActionKind::evaluate:
        action.count = pick<int>(choices_, {{1, 60}, {2, 30}, {3, 10}}, "passes");
        break;
      case ActionKind::inject_nonfinite:
        action.rank = pick_between(choices_, 0, flags_.data_parallel_size - 1, "rank");
        action.where = draw_place();
        break;
      case ActionKind::set_microbatches:
        action.count = pick_between(choices_, 1, flags_.data_parallel_size > 4 ? 2 : 4, "microbatches");
        break;
      case ActionKind::offload_grad_buffers:
        offloaded_ = true;
        break;
      case ActionKind::restore_grad_buffers:
        offloaded_ = false;
        break;
      case ActionKind::save_checkpoint:
        action.name = flip(choices_, 75, "name") ? "a" : "b";
        saved_[action.name] = batches_;
        break;
      case ActionKind::load_checkpoint: {
        const auto chosen =
            std::next(saved_.begin(), static_cast<int>(choices_.below(saved_.size(), "name")));
        action.name = chosen->first;
        batches_ = chosen->second;
        break;
      }
      case ActionKind::skip_iteration:
      case ActionKind::reset_graph:
      case ActionKind::check_weight_hashes:
      case ActionKind::rerun_forward_backward:
        break;
    }
    actions_.push_back(action);
  }

  InjectionPlace draw_place() {
    if (!may_inject_shard_) return InjectionPlace::grad;
    if (!may_inject_grad_) return InjectionPlace::shard;
    return flip(choices_, 40, "where") ? InjectionPlace::shard : InjectionPlace::grad;
  }

  bool trains_somewhere() const {
    for (const Action& action : actions_) {
      if (trains(action.kind)) return true;
    }
    return false;
  }

  void share_out_steps() {
    std::vector<Action*> training;
    for (Action& action : actions_) {
      if (trains(action.kind)) training.push_back(&action);
    }
    const int steps = pick_between(choices_, 1, kMostGeneratedSteps, "training steps");
    for (int left = steps - static_cast<int>(training.size()); left > 0; --left) {
      ++training[choices_.below(training.size(), "which trains longer")]->count;
    }
  }

  Choices& choices_;
  const Flags& flags_;
  std::vector<Weighted<ActionKind>> weights_;
  bool may_inject_grad_ = false;
  bool may_inject_shard_ = false;
  bool in_loop_ = false;
  bool offloaded_ = false;
  int batches_ = 0;                   // at least so many are consumed
  std::map<std::string, int> saved_;  // by name: batches at the save
  std::vector<Action> actions_;
};

std::vector<Delay> generate_delays(Choices& choices) {
  std::vector<Delay> delays;
  while (delays.size() < 2 && flip(choices, 3, "delay")) delays.push_back(generate_delay(choices));
  return delays;
}

}  // namespace

Delay generate_delay(Choices& choices) {
  static constexpr const char* kComm[] = {"", "all_gather", "reduce_scatter", "all_reduce"};
  static constexpr const char* kCompute[] = {"", "quantize", "zero_grad_buffer", "adam"};
  Delay delay;
  delay.stream = flip(choices, 60, "stream") ? StreamName::comm : StreamName::compute;
  delay.by = pick_between(choices, 1, 40, "by");
  const bool comm = delay.stream == StreamName::comm;
  delay.op = (comm ? kComm : kCompute)[choices.below(4, "op")];
  return delay;
}

std::vector<Action> generate_actions(Choices& choices, const Flags& flags) {
  return ActionWriter(choices, flags).write();
}

void make_it_train(Program& program) {
  Action train, restore;
  train.count = 1;
  restore.kind = ActionKind::restore_grad_buffers;
  bool offloaded = false;
  for (const Action& action : program.actions)
    if (action.kind == ActionKind::offload_grad_buffers || action.kind == ActionKind::restore_grad_buffers)
      offloaded = action.kind == ActionKind::offload_grad_buffers;
  if (offloaded) program.actions.push_back(restore);
  while (plan_program(program).taken_steps == 0) program.actions.push_back(train);
}

Program generate_program(Choices& choices) {
  Program program;
  program.flags = generate_flags(choices);
  program.delays = generate_delays(choices);
  program.actions = generate_actions(choices, program.flags);
  make_it_train(program);
  return program;
}

}  // namespace gatherfuzz
