#include "properties/symbolic_monitor.h"

#include "impl/kernels/grad_norm.h"
#include "impl/kernels/main_params.h"
#include "impl/kernels/quantize_weight.h"

namespace gatherfuzz {

Term TermAlgebra::squares(Term a, uint32_t elements) const {
  return square_sum_term(a, 0, elements * static_cast<uint32_t>(sizeof(float)));
}
Term TermAlgebra::norm(Term squares) const {
  return norm_term(squares);
}
Term TermAlgebra::clip(Term norm, float limit) const {
  return clip_term(norm, limit);
}
AdamTerms TermAlgebra::adam(const AdamTerms& before, Term grad, Term coefficient, int step) const {
  return adam_terms(before, grad, coefficient, adam_scalars(lr, beta1, beta2, eps, step));
}

SymbolicMonitor::SymbolicMonitor(World& world, const Program& program, const Plan& plan, Judging judging)
    : Monitor(world, program, plan, judging) {
  for (SymbolicMemory& m : world.symbolic()) m.set_listener(this);
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
  flow_.emplace(TermAlgebra{f.lr, f.adam_beta1, f.adam_beta2, f.adam_eps},
                reference::DataflowRules{world_.ranks(), f.loss_scale, f.clip_grad}, std::move(elements),
                std::move(initial));
  return *flow_;
}

const SymbolicMonitor::WeightTerms& SymbolicMonitor::weight_terms(int version, uint32_t param) {
  const auto v = static_cast<std::size_t>(version);
  while (weights_.size() <= v) {
    const int next = static_cast<int>(weights_.size());
    std::vector<WeightTerms> all(parts().params.size());
    for (uint32_t p = 0; p < all.size(); ++p) {
      const DType dtype = program_.flags.fp8_recipe == Recipe::fp32 ? DType::f32 : DType::bf16;
      const Term value = staged_term(flow().state(next, p).main, dtype);
      all[p].planes[static_cast<int>(Plane::whole)] = value;
      for (const Plane plane :
           {Plane::rowwise, Plane::rowwise_scale, Plane::columnwise, Plane::columnwise_scale})
        all[p].planes[static_cast<int>(plane)] =
            quantized_term(value, plane, program_.flags.mx_scale_rounding);
    }
    weights_.push_back(std::move(all));
  }
  return weights_[v][param];
}

void SymbolicMonitor::check_weight(const OpRef& op, const Operand& operand, Plane plane, uint32_t param) {
  // Inside a composite the planes of a weight that is quantized on use are values like activations.
  if (op.type->composite && plane != Plane::whole && !model_is_mxfp8_gather(program_.flags)) return;
  const int version = rank(op.rank).transitions;
  const Term expected = weight_terms(version, param).planes[static_cast<int>(plane)];
  const Digest found = memory(op.rank).digest(operand);
  const bool scale = plane == Plane::rowwise_scale || plane == Plane::columnwise_scale;
  const uint32_t elements = element_count(param) / (scale ? static_cast<uint32_t>(kMxBlock) : 1u);
  if (found.term == expected && operand.count() == elements) return;
  const std::string where = std::string(op.type->name) + " reads " + param_name(param);
  if (found.term == kZeroTerm && !scale) {
    report(FailureClass::zeroed_weights, op.rank, op.type->name, param_name(param),
           where + " as all zeros; expected the main params of version " + std::to_string(version));
    return;
  }
  for (int older = version - 1; older >= 0; --older) {
    if (found.term != weight_terms(older, param).planes[static_cast<int>(plane)]) continue;
    report(FailureClass::stale_weights, op.rank, op.type->name, param_name(param),
           where + " at version " + std::to_string(older) + "; expected version " + std::to_string(version));
    return;
  }
  report(FailureClass::wrong_weights, op.rank, op.type->name, param_name(param),
         where + ", which holds no version of the main params; expected version " + std::to_string(version));
}

void SymbolicMonitor::check_clean(const OpRef& op, const Operand& grad, uint32_t param) {
  if (memory(op.rank).digest(grad).term == kZeroTerm) return;
  report(FailureClass::polluted_grads, op.rank, op.type->name, param_name(param),
         std::string(op.type->name) + " adds the first gradient of " + param_name(param) +
             " to memory that is not zero");
}

std::vector<reference::Contributions<Term>>& SymbolicMonitor::contributions(int step) {
  auto [entry, fresh] = contributions_.try_emplace(step);
  if (fresh) {
    entry->second.resize(parts().params.size());
    for (auto& c : entry->second)
      c.by_source.resize(static_cast<std::size_t>(world_.ranks() * planned(step).microbatches));
    contributions_.erase(step - 2);
    reduced_.erase(step - 2);
  }
  return entry->second;
}

void SymbolicMonitor::summand(int r, uint16_t tag, Label label, Term term) {
  const RankState& state = rank(r);
  if (state.step_ops == nullptr || !state.in_step) return;
  const PlannedStep& step = planned(state.step);
  reference::Contributions<Term>& c = contributions(state.step)[tag - 1u];
  for (int m = 0; m < step.microbatches; ++m) {
    if (label != make_label(static_cast<uint32_t>(r), static_cast<uint32_t>(m), step.batch)) continue;
    c.by_source[static_cast<std::size_t>(r * step.microbatches + m)] = term;
    return;
  }
  c.foreign = true;
}

void SymbolicMonitor::check_reduced(const OpRef& op, const Shard& shard, const Operand& reduced) {
  const RankState& state = rank(op.rank);
  if (!state.in_step || injected(state.step)) return;
  auto& by_param = reduced_[state.step];
  if (by_param.empty()) {
    for (const auto& c : contributions(state.step)) by_param.push_back(flow().reduced(c));
  }
  const auto width = static_cast<uint32_t>(size_of(reduced.dtype));
  for (const ShardPiece& piece : shard.pieces) {
    Operand range = reduced;
    range.begin += piece.in_shard * width;
    range.bytes = piece.count * width;
    const std::optional<Term>& expected = by_param[piece.param];
    bool right = expected.has_value();
    memory(op.rank).pieces(range, [&](const Segment& s, uint32_t) {
      const uint32_t offset = piece.in_param * width + (s.begin - range.begin);
      right = right && s.term == *expected && (!s.has_position() || s.offset == offset);
    });
    if (right) continue;
    report(FailureClass::contribution, op.rank, op.type->name, param_name(piece.param),
           "the reduced gradient of " + param_name(piece.param) +
               (expected ? " is not the mean over ranks of every microbatch's contribution, each once"
                         : " lacks a contribution, or holds one of another batch"));
  }
}

void SymbolicMonitor::check_state(int r, FailureClass failure) {
  RankState& state = rank(r);
  if (state.step_ops == nullptr) return;
  for (const Shard& shard : state.step_ops->parts().optimizer->shards()) {
    for (const ShardPiece& piece : shard.pieces) {
      const AdamTerms& expected = flow().state(state.transitions, piece.param);
      const std::pair<const View<float>*, Term> parts_of_state[] = {{&shard.main, expected.main},
                                                                    {&shard.exp_avg, expected.exp_avg},
                                                                    {&shard.exp_avg_sq, expected.exp_avg_sq}};
      for (const auto& [view, term] : parts_of_state) {
        bool right = true;
        memory(r).pieces(view->slice(piece.in_shard, piece.count),
                         [&](const Segment& s, uint32_t) { right = right && s.term == term; });
        if (right) continue;
        report(failure, r, "adam", param_name(piece.param),
               "main params or moments of " + param_name(piece.param) + " are not those of version " +
                   std::to_string(state.transitions));
        return;
      }
    }
  }
}

uint64_t SymbolicMonitor::fingerprint(int r, const Operand& operand) {
  return memory(r).digest(operand).term;
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
  for (const auto& c : contributions(step)) grads.push_back(flow().reduced(c).value_or(term_of("unknown")));
  flow().take_step(grads);
}

void SymbolicMonitor::restore(int to) {
  flow().restore(to);
}

}  // namespace gatherfuzz
