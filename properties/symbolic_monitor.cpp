#include "properties/symbolic_monitor.h"

#include <algorithm>
#include <tuple>

#include "impl/kernels/grad_norm.h"
#include "impl/kernels/load_batch.h"
#include "impl/kernels/main_params.h"
#include "impl/kernels/quantize_weight.h"
#include "impl/kernels/token_count.h"
#include "properties/reference_settings.h"
#include "properties/source_groups.h"

namespace gatherfuzz {

namespace {

// Calls f(piece, segment) for each part of memory that one of the pieces of a shard lies in; the segment is
// not cut to the piece.
template <class F>
void for_each_held(const SymbolicMemory& memory, const Operand& shard, const std::vector<ShardPiece>& pieces,
                   F&& f) {
  const auto width = static_cast<uint32_t>(size_of(shard.dtype));
  auto piece = pieces.begin();
  memory.pieces(shard, [&](const Segment& s, uint32_t end) {
    const uint32_t first = (s.begin - shard.begin) / width, last = (end - shard.begin + width - 1) / width;
    while (piece != pieces.end() && piece->in_shard + piece->count <= first) ++piece;
    for (auto p = piece; p != pieces.end() && p->in_shard < last; ++p) f(*p, s);
  });
}

}  // namespace

Term TermAlgebra::divide(Term a, Term tokens) const {
  return a * per_token_factor(tokens);
}
Term TermAlgebra::squares(Term a, uint32_t elements) const {
  return square_sum_term(a, 0, elements * static_cast<uint32_t>(sizeof(float)));
}
Term TermAlgebra::norm(Term squares) const {
  return norm_term(squares);
}
Term TermAlgebra::clip(Term norm, float limit) const {
  return clip_term(norm, limit);
}
AdamTerms TermAlgebra::adam(const AdamTerms& before, Term grad, Term coefficient, int step,
                            float weight_decay) const {
  if (step != scalars_step) {
    const double lr = reference::learning_rate(schedule, step - 1);
    scalars_term = adam_scalars_term(adam_constants(beta1, beta2, eps),
                                     adam_step_scalars_term(adam_step_scalars(lr, beta1, beta2, step)));
    scalars_step = step;
  }
  return adam_terms(before, grad, coefficient, scalars_term, weight_decay);
}

SymbolicMonitor::SymbolicMonitor(World& world, const Program& program, const Plan& plan, Judging judging)
    : Monitor(world, program, plan, judging) {
  for (SymbolicMemory& m : world.symbolic()) m.set_listener(this);
  steps_.resize(plan.steps.size());
  quantizes_on_use_ = !model_is_mxfp8_gather(program.flags);
}

uint32_t SymbolicMonitor::element_count(uint32_t param) const {
  return static_cast<uint32_t>(parts().params[param].rows * parts().params[param].cols);
}

SymbolicMonitor::Dataflow& SymbolicMonitor::flow() {
  if (flow_) return *flow_;
  const Flags& f = program_.flags;
  std::vector<uint32_t> elements;
  std::vector<AdamTerms> initial;
  for (uint32_t p = 0; p < parts().params.size(); ++p) {
    elements.push_back(element_count(p));
    initial.push_back({initial_main_term(f.seed, p), kZeroTerm, kZeroTerm});
  }
  reference::DataflowRules rules{world_.ranks(), f.loss_scale, f.clip_grad};
  for (const reference::ParamShape& param : reference::param_shapes(reference_shape(f)))
    rules.weight_decay.push_back(reference::settings_for(param, reference_settings(f).adam).weight_decay);
  flow_.emplace(TermAlgebra{reference_lr_schedule(f), f.adam_beta1, f.adam_beta2, f.adam_eps},
                std::move(rules), std::move(elements), std::move(initial));
  return *flow_;
}

void SymbolicMonitor::add_weight_terms() {
  const int version = static_cast<int>(weights_.size());
  const Flags& f = program_.flags;
  const DType dtype = f.fp8_recipe == Recipe::fp32 ? DType::f32 : DType::bf16;
  const std::vector<reference::ParamShape> shapes = reference::param_shapes(reference_shape(f));
  std::vector<WeightTerms> all(shapes.size());
  for (uint32_t p = 0; p < all.size(); ++p) {
    const uint32_t elements = element_count(p);
    const Term value = staged_term(flow().states(version)[p].main, dtype);
    all[p].at(Plane::whole) = {value, elements * static_cast<uint32_t>(size_of(dtype))};
    if (!shapes[p].mx || f.fp8_recipe != Recipe::mxfp8) continue;
    for (const Plane plane : {Plane::rowwise, Plane::columnwise})
      all[p].at(plane) = {quantized_term(value, plane, f.mx_scale_rounding), elements};
    for (const Plane plane : {Plane::rowwise_scale, Plane::columnwise_scale})
      all[p].at(plane) = {quantized_term(value, plane, f.mx_scale_rounding),
                          elements / static_cast<uint32_t>(kMxBlock)};
  }
  weights_.push_back(std::move(all));
}

void SymbolicMonitor::check_weight(const OpRef& op, const Operand& operand, Plane plane, uint32_t param) {
  // Inside a composite the planes of a weight that is quantized on use are values like activations.
  if (quantizes_on_use_ && plane != Plane::whole && op.type->composite) return;
  const int version = rank(op.rank).transitions;
  const auto& expected = weight_terms(version, param).at(plane);
  const Term found = memory(op.rank).digest(operand).term;
  if (found != expected.term || operand.bytes != expected.bytes)
    report_wrong_weight(op, operand, plane, param, version, found);
}

void SymbolicMonitor::report_wrong_weight(const OpRef& op, const Operand& operand, Plane plane,
                                          uint32_t param, int version, Term found) {
  FoundWeight holds{FailureClass::wrong_weights, 0, false, 0, operand.bytes};
  const bool scale = plane == Plane::rowwise_scale || plane == Plane::columnwise_scale;
  if (found == kZeroTerm && !scale) {
    const Operand scales = scales_of(op, operand, plane);
    const Plane scale_plane = plane == Plane::rowwise ? Plane::rowwise_scale : Plane::columnwise_scale;
    holds.failure = FailureClass::zeroed_weights;
    holds.quantized =
        !scales.empty() && memory(op.rank).digest(scales).term ==
                               quantized_term(kZeroTerm, scale_plane, program_.flags.mx_scale_rounding);
    return report_weight(op, operand, plane, param, version, holds);
  }
  for (int older = version - 1; older >= 0; --older) {
    if (found != weight_terms(older, param).at(plane).term) continue;
    holds.failure = FailureClass::stale_weights;
    holds.version = older;
    return report_weight(op, operand, plane, param, version, holds);
  }
  // From the first to the last byte that is not as expected.
  const Term expected = weight_terms(version, param).at(plane).term;
  std::tie(holds.first, holds.end) = other_than(op.rank, operand, expected);
  report_weight(op, operand, plane, param, version, holds);
}

std::pair<uint32_t, uint32_t> SymbolicMonitor::other_than(int r, const Operand& operand, Term expected) {
  uint32_t first = operand.bytes, end = 0;
  memory(r).pieces(operand, [&](const Segment& s, uint32_t piece_end) {
    if (s.term == expected && (!s.has_position() || s.offset == s.begin - operand.begin)) return;
    first = std::min(first, s.begin - operand.begin);
    end = std::max(end, piece_end - operand.begin);
  });
  return {std::min(first, end), end};
}

void SymbolicMonitor::check_clean(const OpRef& op, const Operand& grad, uint32_t param) {
  if (memory(op.rank).digest(grad).term == kZeroTerm) return;
  const auto [first, end] = other_than(op.rank, grad, kZeroTerm);
  report_polluted(op, grad, param, first, end);
}

SymbolicMonitor::StepTerms& SymbolicMonitor::terms_of(int step) {
  StepTerms& terms = steps_[static_cast<std::size_t>(step)];
  if (terms.contributions.empty()) begin_terms(step);
  return terms;
}

// Takes over the memory of the last step but one, which every rank has left.
void SymbolicMonitor::begin_terms(int step) {
  StepTerms& terms = steps_[static_cast<std::size_t>(step)];
  if (step >= 2) std::swap(terms, steps_[static_cast<std::size_t>(step) - 2]);
  terms.reduced.clear();
  terms.contributions.resize(parts().params.size());
  for (uint32_t p = 0; p < terms.contributions.size(); ++p) {
    auto& c = terms.contributions[p];
    c.by_source.assign(static_cast<std::size_t>(world_.ranks() * planned(step).microbatches * uses(p)),
                       std::nullopt);
    c.foreign = false;
  }
}

void SymbolicMonitor::summand(int r, uint16_t tag, Label label, Term term) {
  const RankState& state = rank(r);
  if (state.step_ops == nullptr || !state.in_step) return;
  const PlannedStep& step = planned(state.step);
  reference::Contributions<Term>& c = terms_of(state.step).contributions[tag - 1u];
  for (int m = 0; m < step.microbatches; ++m) {
    if (label != make_label(static_cast<uint32_t>(r), static_cast<uint32_t>(m), step.batch)) continue;
    const int count = uses(tag - 1u);
    const int use = count > 1 && std::string_view(state.running->name) == "embedding_backward" ? 1 : 0;
    c.by_source[static_cast<std::size_t>((r * step.microbatches + m) * count + use)] = term;
    return;
  }
  c.foreign = true;
}

// With per-token loss: the tokens of every rank and microbatch, each counted once.
std::optional<Term> SymbolicMonitor::tokens_of(int step) const {
  if (!program_.flags.calculate_per_token_loss) return std::nullopt;
  const PlannedStep& s = planned(step);
  Term tokens = kZeroTerm;
  for (int r = 0; r < world_.ranks(); ++r)
    for (int m = 0; m < s.microbatches; ++m)
      tokens += count_term(targets_term(r, m, static_cast<int32_t>(s.batch)));
  return tokens;
}

std::optional<Term> SymbolicMonitor::reduced(int step, uint32_t param) {
  StepTerms& terms = terms_of(step);
  if (terms.reduced.empty()) {
    const std::optional<Term> tokens = tokens_of(step);
    for (const auto& c : terms.contributions) terms.reduced.push_back(flow().reduced(c, tokens));
  }
  return terms.reduced[param];
}

void SymbolicMonitor::check_reduced(const OpRef& op, const Shard& shard, const Operand& reduced) {
  const RankState& state = rank(op.rank);
  if (!state.in_step || injected(state.step)) return;
  const auto width = static_cast<uint32_t>(size_of(reduced.dtype));
  const ShardPiece* wrong = nullptr;  // the piece reported last
  for_each_held(memory(op.rank), reduced, shard.pieces, [&](const ShardPiece& piece, const Segment& s) {
    const std::optional<Term> expected = this->reduced(state.step, piece.param);
    const uint32_t offset = (piece.in_param - piece.in_shard) * width + (s.begin - reduced.begin);
    if (&piece == wrong || (expected && s.term == *expected && (!s.has_position() || s.offset == offset)))
      return;
    wrong = &piece;
    report_reduced(op, piece, reduced,
                   reduced_text(terms_of(state.step).contributions[piece.param], s.term, state.step));
  });
}

// Which one change of what is expected explains what was found: terms add up and scale exactly.
std::string SymbolicMonitor::reduced_text(const reference::Contributions<Term>& c, Term found,
                                          int step) const {
  if (c.foreign) return "a contribution of another batch";
  const SourceGroups groups(world_.ranks(), planned(step).microbatches, c.by_source.size());
  Term sum = kZeroTerm;
  for (std::size_t i = 0; i < c.by_source.size(); ++i) {
    if (!c.by_source[i]) return "nothing of " + groups.text(groups.of(i));
    sum += *c.by_source[i];
  }
  if (found == kZeroTerm) return "zero";
  const std::optional<Term> tokens = tokens_of(step);
  const int ranks = world_.ranks();
  const Term factor = tokens       ? per_token_factor(*tokens)
                      : ranks == 1 ? 1
                                   : scale_term(1.0f / static_cast<float>(ranks));
  for (const SourceGroups::Group& group : groups.from_small_to_large()) {
    Term part = kZeroTerm;
    for (std::size_t i = 0; i < c.by_source.size(); ++i)
      if (groups.contains(group, i)) part += *c.by_source[i];
    if (found == (sum - part) * factor) return "nothing of " + groups.text(group);
    if (found == (sum + part) * factor) return groups.text(group) + " twice";
  }
  if (tokens && found == sum) return "the sum over tokens, not divided by their number";
  if (ranks > 1 && found == sum) return "the sum over ranks, not their mean";
  if (tokens && found == sum * factor * factor) return "that, divided by the tokens of all ranks again";
  if (ranks > 1 && found == sum * factor * factor) return "the mean, divided by the number of ranks again";
  return "something else";
}

void SymbolicMonitor::check_state(int r, FailureClass failure) {
  const RankState& state = rank(r);
  if (state.step_ops == nullptr) return;
  const std::vector<AdamTerms>& expected = flow().states(state.transitions);
  const ShardPiece* wrong = nullptr;
  const auto check = [&](const Shard& shard, const View<float>& view, Term AdamTerms::*part) {
    for_each_held(memory(r), view, shard.pieces, [&](const ShardPiece& piece, const Segment& s) {
      if (wrong == nullptr && s.term != expected[piece.param].*part) wrong = &piece;
    });
  };
  for (const Shard& shard : state.step_ops->parts().optimizer->shards()) {
    check(shard, shard.main, &AdamTerms::main);
    check(shard, shard.exp_avg, &AdamTerms::exp_avg);
    check(shard, shard.exp_avg_sq, &AdamTerms::exp_avg_sq);
  }
  if (wrong != nullptr)
    report(failure, r, "adam", param_name(wrong->param),
           "main params or moments of " + param_name(wrong->param) + " are not those of version " +
               std::to_string(state.transitions));
}

uint64_t SymbolicMonitor::fingerprint(int r, const Operand& operand) {
  return memory(r).digest(operand).term;
}

std::optional<float> SymbolicMonitor::number(int, const Operand&) {
  return std::nullopt;
}

uint64_t SymbolicMonitor::main_fingerprint(int r) {
  uint64_t hash = 0;  // a sum of position hashes does not depend on how shards are cut
  for (const Shard& shard : rank(r).step_ops->parts().optimizer->shards())
    memory(r).pieces(shard.main, [&](const Segment& s, uint32_t end) {
      hash += square_sum_term(s.term, s.offset, s.offset + (end - s.begin));
    });
  return hash;
}

bool SymbolicMonitor::is_zero_gradient(int r, const Operand& operand) {
  return memory(r).digest(operand).term == kZeroTerm;
}

void SymbolicMonitor::take_step(int step) {
  std::vector<Term> grads;
  grads.reserve(parts().params.size());
  for (uint32_t p = 0; p < parts().params.size(); ++p)
    grads.push_back(reduced(step, p).value_or("unknown"_term));
  flow().take_step(grads);
}

void SymbolicMonitor::restore(int to) {
  flow().restore(to);
}

}  // namespace gatherfuzz
