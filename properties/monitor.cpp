#include "properties/monitor.h"

#include <algorithm>

#include "impl/kernels/adam.h"
#include "impl/kernels/grad_norm.h"
#include "impl/kernels/gradients.h"
#include "impl/kernels/quantize_weight.h"
#include "properties/marks.h"

namespace gatherfuzz {

namespace {

template <class Op>
bool is(const OpRef& ref) {
  return ref.type == &op_type<Op>();
}

template <class Op>
const Op& as(const OpRef& ref) {
  return *reinterpret_cast<const Op*>(ref.op);
}

// Position hash of the ownership sum.
uint64_t position(uint32_t param, uint32_t element) {
  return mix(mix("owner"_term, param), element);
}

}  // namespace

Monitor::Monitor(World& world, const Program& program, const Plan& plan, Judging judging)
    : world_(world),
      program_(program),
      plan_(plan),
      judging_(judging),
      ranks_(static_cast<std::size_t>(world.ranks())),
      ended_(plan.steps.size(), 0) {}

void Monitor::attach(int r, const TrainStep& step) {
  rank(r).step_ops = &step;
  rank(r).accumulations.assign(step.parts().params.size(), 0);
  owned_.assign(step.parts().params.size(), 0);
}

int Monitor::uses(uint32_t param) const {
  return param == kEmbeddingParam && !program_.flags.untie_embeddings_and_output_weights ? 2 : 1;
}

const Shard& Monitor::shard_of(int r, uint16_t tag) const {
  return ranks_[static_cast<std::size_t>(r)].step_ops->parts().optimizer->shards()[tag - 1u];
}

Violation& Monitor::report(FailureClass failure, int r, const char* op, std::string what, std::string text) {
  Violation& violation = point_.emplace_back();
  violation.failure = failure;
  violation.rank = r;
  violation.iteration = iteration(r);
  violation.op = op;
  violation.what = std::move(what);
  violation.text = std::move(text);
  return violation;
}

void Monitor::settle_found() {
  if (!verdicts_.any()) {
    verdicts_.found = std::move(point_);
    if (judging_ == Judging::stop_at_first) world_.request_stop();
  }
  point_.clear();
}

void Monitor::before(const OpRef& op) {
  RankState& state = rank(op.rank);
  if (state.step_ops == nullptr || world_.stopped()) return;
  state.running = op.type;
  if (op.graph != 0) {
    state.replayed = state.replayed || op.type->reads_weights;
    state.optimizer_replayed = state.optimizer_replayed || is<Adam>(op);
  }
  if (judging_ == Judging::none) return;
  judge_before(op);
  settle();
}

void Monitor::judge_before(const OpRef& op) {
  if (op.type->reads_weights || op.type->accumulates) {
    weights_and_gradients_before(op);
  } else if (is<Adam>(op)) {
    adam_before(op);
  } else if (is<CopyReducedGradients>(op)) {
    const auto& copy = as<CopyReducedGradients>(op);
    check_reduced(op, shard_of(op.rank, copy.source.tag), copy.source);
    ++happened_.gradients_compared;
    if (!happened_.nonzero_gradient) happened_.nonzero_gradient = !is_zero_gradient(op.rank, copy.source);
  } else if (is<AllGather>(op)) {
    ++happened_.gathers;
  } else if (is<QuantizeWeight>(op)) {
    ++happened_.casts;
  }
}

void Monitor::weights_and_gradients_before(const OpRef& op) {
  RankState& state = rank(op.rank);
  for_each_weight_read(*op.type, op.op, [&](const Operand& operand, const OperandField& field) {
    if (operand.tag == 0) return;
    check_weight(op, operand, field.plane, operand.tag - 1u);
    ++happened_.weights_compared;
  });
  for_each_accumulation(*op.type, op.op, [&](const Operand& operand, const OperandField&) {
    if (operand.tag != 0 && state.accumulations[operand.tag - 1u] == 0)
      check_clean(op, operand, operand.tag - 1u);
  });
}

void Monitor::after(const OpRef& op) {
  RankState& state = rank(op.rank);
  if (state.step_ops == nullptr || world_.stopped()) return;
  if (op.type->accumulates) {
    if (judging_ == Judging::none) return;
    for_each_accumulation(*op.type, op.op, [&](const Operand& operand, const OperandField&) {
      if (operand.tag == 0) return;
      const uint32_t param = operand.tag - 1u;
      accumulated(op, operand, param, ++state.accumulations[param]);
    });
  } else if (is<FinishNorm>(op)) {
    state.now.norm = fingerprint(op.rank, as<FinishNorm>(op).norm);
    state.now.numbers.norm = number(op.rank, as<FinishNorm>(op).norm);
    if (judging_ != Judging::none) check_norm(op, as<FinishNorm>(op).norm);
  } else if (is<ClipCoefficient>(op)) {
    state.now.clip = fingerprint(op.rank, as<ClipCoefficient>(op).coefficient);
    state.now.numbers.clip = number(op.rank, as<ClipCoefficient>(op).coefficient);
  }
  settle();
}

void Monitor::adam_before(const OpRef& op) {
  RankState& state = rank(op.rank);
  state.adam_ran = true;
  ++happened_.steps;
  if (!state.in_step) return;
  if (planned(state.step).skipped) {
    report(FailureClass::skip_differs, op.rank, op.type->name, "step",
           "a gradient that is not finite must make every rank skip the step, but this rank takes it");
    return;
  }
  const Operand& main = as<Adam>(op).main;
  const uint16_t tag = main.tag;
  const Shard& shard = shard_of(op.rank, tag);
  uint32_t& stepped = state.stepped[tag - 1u];
  stepped += main.count();
  if (stepped > shard.main.count())
    report(FailureClass::ownership, op.rank, op.type->name, "bucket",
           "this rank's shard of bucket " + std::to_string(tag - 1) + " is stepped twice in one iteration");
  // The part of each piece that the op steps.
  const uint32_t begin = (main.begin - shard.main.begin) / static_cast<uint32_t>(sizeof(float));
  const uint32_t end = begin + main.count();
  for (const ShardPiece& piece : shard.pieces) {
    const uint32_t first = std::max(begin, piece.in_shard),
                   last = std::min(end, piece.in_shard + piece.count);
    if (first >= last) continue;
    const uint32_t in_param = piece.in_param - piece.in_shard;  // modulo 2^32, as are the sums below
    owned_[piece.param] += position(piece.param, in_param + last) - position(piece.param, in_param + first);
  }
}

void Monitor::mark(int r, const Mark& mark) {
  if (world_.stopped()) return;
  switch (static_cast<MarkCode>(mark.code)) {
    case MarkCode::step_begin:
      step_begin(r, static_cast<int>(mark.detail));
      break;
    case MarkCode::step_end:
      step_end(r);
      break;
    case MarkCode::save:
      saved_transitions_[mark.detail] = rank(r).transitions;
      break;
    case MarkCode::restore:
      if (judging_ != Judging::none) pass_transition(r, saved_transitions_.at(mark.detail));
      break;
    case MarkCode::rerun:
      std::fill(rank(r).accumulations.begin(), rank(r).accumulations.end(), 0);
      break;
    case MarkCode::end:
      if (judging_ != Judging::none) check_state(r, FailureClass::wrong_weights);
      break;
  }
  settle();
}

void Monitor::step_begin(int r, int step) {
  RankState& state = rank(r);
  if (judging_ != Judging::none) check_state(r, FailureClass::wrong_weights);
  state.step = step;
  state.in_step = true;
  state.adam_ran = false;
  state.replayed = state.optimizer_replayed = false;
  state.stepped.assign(state.step_ops->parts().optimizer->shards().size(), 0);
  state.now = {};
  std::fill(state.accumulations.begin(), state.accumulations.end(), 0);
}

void Monitor::step_end(int r) {
  RankState& state = rank(r);
  const PlannedStep& step = planned(state.step);
  if (judging_ != Judging::none) judge_step_end(r);
  StepTrace trace = step.skipped ? StepTrace() : state.now;
  trace.loss = fingerprint(r, state.step_ops->reduced_loss());
  trace.numbers.loss = number(r, state.step_ops->reduced_loss());
  trace.main_params = main_fingerprint(r);
  state.traces.push_back(trace);
  if (r == 0 && state.replayed) ++happened_.replays;
  if (r == 0 && state.optimizer_replayed) ++happened_.optimizer_replays;
  state.in_step = false;
  if (judging_ == Judging::none || ++ended_[static_cast<std::size_t>(state.step)] < world_.ranks()) return;
  if (!step.skipped) check_ownership(r);
  check_replicas(state.step);
  std::fill(owned_.begin(), owned_.end(), 0);
}

void Monitor::judge_step_end(int r) {
  RankState& state = rank(r);
  check_losses(r);
  if (planned(state.step).skipped) {
    check_state(r, FailureClass::skip_differs);
  } else if (!state.adam_ran) {
    report(FailureClass::skip_differs, r, "adam", "step",
           "the step was skipped on this rank although nothing was wrong");
  } else {
    pass_transition(r, -1);
  }
}

// Moves this rank to the next transition; the first rank to come to it works it out.
void Monitor::pass_transition(int r, int restored) {
  RankState& state = rank(r);
  if (state.transitions++ < static_cast<int>(transitions_.size())) return;
  transitions_.push_back(restored);
  if (restored >= 0) {
    restore(restored);
  } else {
    take_step(state.step);
  }
}

void Monitor::check_ownership(int r) {
  for (uint32_t p = 0; p < owned_.size(); ++p) {
    const auto elements = static_cast<uint32_t>(parts().params[p].rows * parts().params[p].cols);
    if (owned_[p] != position(p, elements) - position(p, 0))
      report(FailureClass::ownership, r, "adam", param_name(p),
             "every element must be stepped once by one owner; the ranges stepped in this iteration are no "
             "partition of it");
  }
}

// Some ranks may be in the next step already: what they came to in this one is in their traces.
void Monitor::check_replicas(int step) {
  const StepTrace& first = traces(0)[static_cast<std::size_t>(step)];
  for (int r = 1; r < world_.ranks(); ++r) {
    const auto differs = difference(first, traces(r)[static_cast<std::size_t>(step)]);
    if (!differs) continue;
    report(FailureClass::replica_differs, r, "optimizer_step", differs->what,
           std::string("the ") + differs->what + " differs between rank 0 and rank " + std::to_string(r) +
               (differs->values.empty() ? "" : ": " + differs->values));
  }
}

}  // namespace gatherfuzz
