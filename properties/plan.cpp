#include "properties/plan.h"

#include <algorithm>
#include <map>

namespace gatherfuzz {

namespace {

// Walks the actions with just the state that the meaning table speaks of.
class Walk {
 public:
  Walk(const Program& program, const PlanStart& start)
      : flags_(program.flags), microbatches_(start.microbatches), batch_(start.batch) {
    for (const Action& action : program.actions) {
      apply(action);
      ++action_;
    }
  }

  Plan take() { return std::move(plan_); }

 private:
  void apply(const Action& action) {
    switch (action.kind) {
      case ActionKind::train:
        for (int i = 0; i < action.count; ++i) step();
        break;
      case ActionKind::warmup: {
        hooks_ = true;
        const uint32_t batch = batch_;
        for (int i = 0; i < action.count; ++i) step();
        batch_ = batch;
        break;
      }
      case ActionKind::start_loop:
        hooks_ = action.hooks_on;
        break;
      case ActionKind::end_loop:
        hooks_ = false;
        if (!action.keep_graph) drop_graph(true);
        break;
      case ActionKind::evaluate:
        plan_.evaluations += action.count;
        break;
      case ActionKind::inject_nonfinite:
        inject({action.rank, action.where});
        break;
      case ActionKind::skip_iteration:
        ++batch_;
        break;
      case ActionKind::set_microbatches:
        if (action.count != microbatches_) drop_graph(false);
        microbatches_ = action.count;
        break;
      case ActionKind::reset_graph:
        drop_graph(true);
        break;
      case ActionKind::rerun_forward_backward:
        call();
        plan_.rerun_microbatches += microbatches_;
        break;
      case ActionKind::restore_grad_buffers:
        drop_graph(false);
        break;
      case ActionKind::save_checkpoint:
        saved_[action.name] = {batch_, microbatches_};
        break;
      case ActionKind::load_checkpoint: {
        const PlanStart& saved = saved_.at(action.name);
        batch_ = saved.batch;
        if (saved.microbatches != microbatches_) drop_graph(false);
        microbatches_ = saved.microbatches;
        break;
      }
      case ActionKind::check_weight_hashes:
      case ActionKind::offload_grad_buffers:
        break;
    }
  }

  // A rank's later injection takes the place of its earlier one.
  void inject(PlannedInjection injection) {
    std::erase_if(injections_, [&](const PlannedInjection& i) { return i.rank == injection.rank; });
    injections_.push_back(injection);
  }

  void drop_graph(bool counter) {
    graph_ = false;
    if (counter) calls_ = optimizer_steps_ = 0;
  }

  // forward_backward: what it finds decides whether it captures.
  void call() {
    if (!graph_ && captures_full_iteration(flags_) && calls_ >= flags_.cuda_graph_warmup_steps &&
        (hooks_ || !flags_.overlap_param_gather)) {
      graph_ = true;
      graph_gathers_ = flags_.overlap_param_gather;
    }
    ++calls_;
  }

  void step() {
    PlannedStep s;
    s.action = action_;
    s.batch = batch_++;
    s.microbatches = microbatches_;
    s.injections.swap(injections_);
    s.skipped = s.injected() && skips_nonfinite(flags_);
    call();
    s.hooks = hooks_;
    s.replays = graph_;
    s.gathers = flags_.overlap_param_gather && (graph_ ? graph_gathers_ : hooks_);
    s.optimizer_replays = flags_.optimizer_cuda_graph && optimizer_steps_ >= flags_.cuda_graph_warmup_steps;
    if (!s.skipped) {
      hooks_ = true;
      ++optimizer_steps_;
    }
    plan_.taken_steps += s.skipped ? 0 : 1;
    plan_.replays += s.replays ? 1 : 0;
    plan_.optimizer_replays += s.optimizer_replays ? 1 : 0;
    plan_.gathering_steps += s.gathers ? 1 : 0;
    plan_.steps.push_back(s);
  }

  const Flags& flags_;
  Plan plan_;
  std::size_t action_ = 0;
  int microbatches_;
  uint32_t batch_;
  bool hooks_ = true;
  int calls_ = 0;
  int optimizer_steps_ = 0;  // taken since graphs were reset
  bool graph_ = false;
  bool graph_gathers_ = false;
  std::vector<PlannedInjection> injections_;  // pending
  std::map<std::string, PlanStart> saved_;    // checkpoints
};

}  // namespace

bool PlannedStep::grad_injected(int rank) const {
  return std::any_of(injections.begin(), injections.end(), [rank](const PlannedInjection& i) {
    return i.rank == rank && i.where == InjectionPlace::grad;
  });
}

Plan plan_program(const Program& program) {
  return plan_program(program, {0, program.flags.num_microbatches});
}

Plan plan_program(const Program& program, const PlanStart& start) {
  return Walk(program, start).take();
}

}  // namespace gatherfuzz
