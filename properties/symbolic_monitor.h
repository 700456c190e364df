// The oracles on symbolic memory: every byte range must hold the term that the expected dataflow gives it.
#pragma once

#include <optional>
#include <vector>

#include "impl/kernels/adam.h"
#include "properties/monitor.h"
#include "reference/dataflow.h"
#include "reference/lr_schedule.h"

namespace gatherfuzz {

// The term algebra, as the expected dataflow wants it.
struct TermAlgebra {
  using Value = Term;
  using State = AdamTerms;

  reference::LrSchedule schedule;
  double beta1, beta2, eps;

  Term zero() const { return kZeroTerm; }
  Term add(Term a, Term b) const { return a + b; }
  Term scale(Term a, float factor) const { return a * scale_term(factor); }
  Term divide(Term a, Term tokens) const;
  Term squares(Term a, uint32_t elements) const;
  Term norm(Term squares) const;
  Term clip(Term norm, float limit) const;
  State adam(const State& before, Term grad, Term coefficient, int step, float weight_decay) const;

  // Of the step asked for last: a step asks for all params.
  mutable Term scalars_term = 0;
  mutable int scalars_step = -1;
};

class SymbolicMonitor : public Monitor, private SummandListener {
 public:
  SymbolicMonitor(World& world, const Program& program, const Plan& plan, Judging judging);

 private:
  using Dataflow = reference::Dataflow<TermAlgebra>;

  // What the planes of a weight hold at one version.
  struct WeightTerms {
    struct {
      Term term = kZeroTerm;
      uint32_t bytes = 0;
    } planes[6];  // by Plane

    auto& at(Plane plane) { return planes[static_cast<int>(plane)]; }
    const auto& at(Plane plane) const { return planes[static_cast<int>(plane)]; }
  };

  // What is known of the gradients of one step, by param; both empty before it and two steps later.
  struct StepTerms {
    std::vector<reference::Contributions<Term>> contributions;
    std::vector<std::optional<Term>> reduced;  // worked out when first asked for
  };

  void check_weight(const OpRef& op, const Operand& operand, Plane plane, uint32_t param) override;
  void check_clean(const OpRef& op, const Operand& grad, uint32_t param) override;
  void accumulated(const OpRef&, const Operand&, uint32_t, int) override {}
  void check_reduced(const OpRef& op, const Shard& shard, const Operand& reduced) override;
  void check_norm(const OpRef&, const Operand&) override {}
  void check_state(int rank, FailureClass failure) override;
  void check_losses(int) override {}
  uint64_t fingerprint(int rank, const Operand& operand) override;
  uint64_t main_fingerprint(int rank) override;
  std::optional<float> number(int rank, const Operand& operand) override;
  bool is_zero_gradient(int rank, const Operand& operand) override;
  void take_step(int step) override;
  void restore(int to) override;
  void summand(int rank, uint16_t tag, Label label, Term term) override;

  SymbolicMemory& memory(int r) { return world_.symbolic()[static_cast<std::size_t>(r)]; }
  Dataflow& flow();
  const WeightTerms& weight_terms(int version, uint32_t param) {
    const auto v = static_cast<std::size_t>(version);
    while (weights_.size() <= v) add_weight_terms();
    return weights_[v][param];
  }
  void add_weight_terms();
  void report_wrong_weight(const OpRef& op, const Operand& operand, Plane plane, uint32_t param, int version,
                           Term found);
  // From the first to the last byte of the operand, counted from its begin, that is not of this term.
  std::pair<uint32_t, uint32_t> other_than(int rank, const Operand& operand, Term expected);
  std::string reduced_text(const reference::Contributions<Term>& contributions, Term found, int step) const;
  StepTerms& terms_of(int step);
  std::optional<Term> reduced(int step, uint32_t param);
  std::optional<Term> tokens_of(int step) const;
  void begin_terms(int step);
  uint32_t element_count(uint32_t param) const;

  bool quantizes_on_use_ = false;
  std::optional<Dataflow> flow_;
  std::vector<std::vector<WeightTerms>> weights_;  // by version, by param; made when first asked for
  std::vector<StepTerms> steps_;
};

}  // namespace gatherfuzz
