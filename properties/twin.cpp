#include "properties/twin.h"

#include <algorithm>
#include <bit>

#include "properties/program_lines.h"

namespace gatherfuzz {

namespace {

constexpr double kLargestDoubledScale = 65536.0;

void turn_off_overlap(Program& p) {
  p.flags.overlap_param_gather = p.flags.overlap_grad_reduce = false;
}

bool is_loaded(const Program& p, const std::string& name) {
  return std::any_of(p.actions.begin(), p.actions.end(), [&](const Action& action) {
    return action.kind == ActionKind::load_checkpoint && action.name == name;
  });
}

bool trains_after_a_save(const Program& p) {
  bool saved = false;
  for (const Action& action : p.actions) {
    if (saved && (action.kind == ActionKind::train || action.kind == ActionKind::warmup)) return true;
    saved = saved || action.kind == ActionKind::save_checkpoint;
  }
  return false;
}

void remove_evaluation(Program& p) {
  const Program before = p;
  std::erase_if(p.actions, [&](const Action& action) {
    return action.kind == ActionKind::evaluate ||
           (action.kind == ActionKind::save_checkpoint && !is_loaded(before, action.name)) ||
           action.kind == ActionKind::check_weight_hashes ||
           action.kind == ActionKind::rerun_forward_backward;
  });
}

// In terms a module that quantizes on use is another op.
void toggle_param_gather(Flags& f, bool numbers) {
  if (f.fp8_recipe != Recipe::mxfp8 || !numbers) return;
  f.fp8_param_gather = !f.fp8_param_gather;
  f.reuse_grad_buf_for_mxfp8_param_ag = f.fp8_param_gather;
}

void change_buckets(Flags& f) {
  if (!f.overlap_grad_reduce) return;  // there is one bucket then
  const bool set = f.bucket_size || f.num_buckets;
  f.bucket_size.reset();
  f.num_buckets.reset();
  if (!set) f.num_buckets = 3;
}

// A product with 1/n commutes with the rounding of bf16 sums only if n is a power of two.
void toggle_average(Flags& f) {
  const bool exact = reduces_in_fp32(f) || std::has_single_bit(static_cast<unsigned>(f.data_parallel_size));
  if (exact && f.data_parallel_size > 1) f.average_in_collective = !f.average_in_collective;
}

void toggle_hooks(Program& p) {
  for (Action& action : p.actions)
    if (action.kind == ActionKind::start_loop) action.hooks_on = !action.hooks_on;
}

void change_schedule(Program& p) {
  p.flags.schedule = p.flags.schedule == Schedule::fifo ? Schedule::reverse : Schedule::fifo;
  p.flags.schedule_seed = 0;
  p.delays.clear();
}

// Changes nothing where the change does not apply.
void change(Program& p, TwinKind kind, bool numbers) {
  Flags& f = p.flags;
  switch (kind) {
    case TwinKind::none:
    case TwinKind::again:
    case TwinKind::resumed:  // the same program, run another way
      break;
    case TwinKind::eager:
      f.cuda_graph_impl = CudaGraphImpl::none;
      f.optimizer_cuda_graph = false;
      break;
    case TwinKind::without_evaluation:
      remove_evaluation(p);
      break;
    case TwinKind::overlap_param_gather:
      f.overlap_param_gather = false;
      break;
    case TwinKind::overlap_grad_reduce:
      turn_off_overlap(p);
      break;
    case TwinKind::reuse_grad_buf_for_mxfp8_param_ag:
      if (f.fp8_param_gather) f.reuse_grad_buf_for_mxfp8_param_ag = !f.reuse_grad_buf_for_mxfp8_param_ag;
      break;
    case TwinKind::fp8_param_gather:
      toggle_param_gather(f, numbers);
      break;
    case TwinKind::buckets:
      change_buckets(f);
      break;
    case TwinKind::registration_order:
      f.registration_order = f.registration_order == RegistrationOrder::execution
                                 ? RegistrationOrder::shuffled
                                 : RegistrationOrder::execution;
      break;
    case TwinKind::average_in_collective:
      toggle_average(f);
      break;
    case TwinKind::loss_scale:
      if (numbers && f.loss_scale && *f.loss_scale <= kLargestDoubledScale) *f.loss_scale *= 2.0;
      break;
    case TwinKind::hooks:
      toggle_hooks(p);
      break;
    case TwinKind::schedule:
      change_schedule(p);
      break;
  }
}

// How often each class has its turn. A class that has no twin gives it to the next one; flags always have
// one.
constexpr FailureClass kTurns[] = {FailureClass::graph_differs, FailureClass::flag_differs,
                                   FailureClass::eval_disturbs, FailureClass::resume_differs,
                                   FailureClass::graph_differs, FailureClass::flag_differs,
                                   FailureClass::eval_disturbs, FailureClass::resume_differs,
                                   FailureClass::flag_differs,  FailureClass::nondeterministic};

}  // namespace

std::string twin_text(const Twin& twin) {
  const TwinInfo& info = twin_table()[static_cast<size_t>(twin.kind)];
  return "the twin " + std::string(info.name) + " (" + std::string(info.meaning) + ")";
}

std::optional<Twin> make_twin(const Program& program, const Plan& plan, TwinKind kind, bool numbers) {
  const bool eager = plan.replays == 0 && plan.optimizer_replays == 0;
  if (kind == TwinKind::none || (kind == TwinKind::eager && eager)) return std::nullopt;
  Twin twin;
  twin.kind = kind;
  twin.failure = twin_table()[static_cast<size_t>(kind)].failure;
  twin.program = program;
  change(twin.program, kind, numbers);
  const bool same = kind == TwinKind::again || (kind == TwinKind::resumed && trains_after_a_save(program));
  if (!same && twin.program == program) return std::nullopt;
  twin.program.faults.clear();
  if (refusal_before_run(twin.program)) return std::nullopt;
  twin.plan = plan_program(twin.program);
  return twin;
}

std::optional<Twin> choose_twin(const Program& program, const Plan& plan, bool numbers) {
  if (program.twin) return make_twin(program, plan, program.twin->kind, numbers);
  const uint64_t hash = program_hash(program);
  const std::span<const TwinInfo> table = twin_table();
  // From a place that the hash gives, the first that applies.
  for (size_t c = 0; c < std::size(kTurns); ++c) {
    const FailureClass wanted = kTurns[(hash + c) % std::size(kTurns)];
    for (size_t k = 0; k < table.size(); ++k) {
      const TwinInfo& info = table[((hash >> 8) + k) % table.size()];
      if (info.failure != wanted) continue;
      if (std::optional<Twin> twin = make_twin(program, plan, info.kind, numbers)) return twin;
    }
  }
  return std::nullopt;
}

}  // namespace gatherfuzz
