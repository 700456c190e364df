// The oracles' view of a run: sees every op before and after it executes, keeps the expectations of each
// rank's step, and records the first violation. What a byte means is left to the two kinds of monitor.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "impl/runtime/local/world.h"
#include "impl/training/train_step.h"
#include "properties/plan.h"
#include "properties/violation.h"

namespace gatherfuzz {

// What one step came to on one rank, comparable between runs of the same program: terms, or hashes of bytes.
struct StepTrace {
  uint64_t loss = 0;
  uint64_t norm = 0;
  uint64_t clip = 0;  // coefficient
  uint64_t main_params = 0;
  struct {
    std::optional<float> loss, norm, clip;
  } numbers;  // for people; none where memory holds terms
};

// Nine digits, by which floats can be told apart.
std::string number_text(float value);

// What differs first: loss, norm or coefficient. `values`: "4.85 and 4.91", empty where there are no numbers.
struct TraceDifference {
  const char* what;
  std::string values;
};
std::optional<TraceDifference> difference(const StepTrace& a, const StepTrace& b);

// How often the things happened that a program implies.
struct Happened {
  int steps = 0;              // Adam on a rank
  int gathers = 0;            // all-gathers of a bucket
  int casts = 0;              // MXFP8 weights quantized
  int replays = 0;            // steps whose forward and backward ran in a graph, in part at least
  int optimizer_replays = 0;  // steps whose Adam did
  uint64_t weights_compared = 0;
  uint64_t gradients_compared = 0;
  bool nonzero_gradient = false;
};

enum class Judging : uint8_t {
  stop_at_first,  // the run ends at the first violation
  keep_going,     // to see how far later comparisons are off
  none,           // only traces: a twin that is compared as a whole
};

class Monitor : public Observer {
 public:
  Monitor(World& world, const Program& program, const Plan& plan, Judging judging);

  // Called by each rank's host code when its model stands; before that, nothing is judged.
  void attach(int rank, const TrainStep& step);

  void before(const OpRef& op) final;
  void after(const OpRef& op) final;
  void mark(int rank, const Mark& mark) final;

  const Verdicts& verdicts() const { return verdicts_; }
  const Happened& happened() const { return happened_; }
  const std::vector<StepTrace>& traces(int rank) const {
    return ranks_[static_cast<std::size_t>(rank)].traces;
  }
  int steps_ended(int rank) const {
    return static_cast<int>(ranks_[static_cast<std::size_t>(rank)].traces.size());
  }
  // The largest share of a bound that any comparison used; 0 where all were equal.
  double worst_share() const { return worst_share_; }
  // The iteration a rank is in or has just ended, from 1; 0 before the first.
  int iteration(int rank) const { return ranks_[static_cast<std::size_t>(rank)].step + 1; }

 protected:
  struct RankState {
    const TrainStep* step_ops = nullptr;
    int step = -1;  // in the plan
    bool in_step = false;
    int transitions = 0;              // of the main params that this rank has passed
    std::vector<int> accumulations;   // of each param in this step
    const OpType* running = nullptr;  // the op that executes
    bool adam_ran = false;
    std::vector<uint32_t> stepped;  // by bucket: how many elements of its shard were stepped in this step
    bool replayed = false;          // some op of this step that reads weights ran in a graph
    bool optimizer_replayed = false;
    StepTrace now;  // norm and coefficient of this step, so far
    std::vector<StepTrace> traces;
  };

  // What kinds of monitor decide.
  virtual void check_weight(const OpRef& op, const Operand& operand, Plane plane, uint32_t param) = 0;
  virtual void check_clean(const OpRef& op, const Operand& grad, uint32_t param) = 0;
  virtual void accumulated(const OpRef& op, const Operand& grad, uint32_t param, int times) = 0;
  virtual void check_reduced(const OpRef& op, const Shard& shard, const Operand& reduced) = 0;
  virtual void check_norm(const OpRef& op, const Operand& norm) = 0;
  // All main params and moments of the rank's shards against the expectation.
  virtual void check_state(int rank, FailureClass failure) = 0;
  virtual void check_losses(int rank) = 0;
  virtual uint64_t fingerprint(int rank, const Operand& operand) = 0;
  virtual uint64_t main_fingerprint(int rank) = 0;
  // A scalar for people, where memory holds numbers.
  virtual std::optional<float> number(int rank, const Operand& operand) = 0;
  virtual bool is_zero_gradient(int rank, const Operand& operand) = 0;
  // The expectation moves on: a step was taken, or state was restored to what it was at transition `to`.
  virtual void take_step(int step) = 0;
  virtual void restore(int to) = 0;

  // Valid until the next report.
  Violation& report(FailureClass failure, int rank, const char* op, std::string what, std::string text);
  // What a weight holds that is not what it must: zeros (`quantized`: with the scales that zeros get), an
  // older version, or anything else, in which the bytes [first, end) are wrong.
  struct FoundWeight {
    FailureClass failure;
    int version = 0;
    bool quantized = false;
    uint32_t first = 0, end = 0;
  };
  void report_weight(const OpRef& op, const Operand& operand, Plane plane, uint32_t param, int version,
                     const FoundWeight& found);
  // The scales beside a plane of data that the op reads; empty if it reads none.
  static Operand scales_of(const OpRef& op, const Operand& weight, Plane plane);
  // Bytes [first, end) of the gradient are not zero.
  void report_polluted(const OpRef& op, const Operand& grad, uint32_t param, uint32_t first, uint32_t end);
  // `found`: what the piece of the reduced gradient holds.
  void report_reduced(const OpRef& op, const ShardPiece& piece, const Operand& reduced, std::string found);
  // "quantize(bf16(main params, version 4))", and "bytes [0, 3072): all of it".
  std::string weight_text(Plane plane, int version) const;
  static std::string range_text(const Operand& operand, uint32_t first, uint32_t end);
  RankState& rank(int r) { return ranks_[static_cast<std::size_t>(r)]; }
  const PlannedStep& planned(int step) const { return plan_.steps[static_cast<std::size_t>(step)]; }
  const Assembly& parts() const { return ranks_[0].step_ops->parts(); }
  const std::string& param_name(uint32_t param) const { return parts().params[param].name; }
  // How often the model uses a parameter, so that each microbatch contributes so often to its gradient: a
  // tied embedding in two places. Its use as the output layer comes first in backward.
  int uses(uint32_t param) const;
  const Shard& shard_of(int rank, uint16_t tag) const;
  bool injected(int step) const { return planned(step).injected(); }

  World& world_;
  const Program& program_;
  const Plan& plan_;
  Happened happened_;
  double worst_share_ = 0.0;
  std::map<uint32_t, int> saved_transitions_;  // by slot: of the warmup that began last, of checkpoints

 private:
  void judge_before(const OpRef& op);
  void weights_and_gradients_before(const OpRef& op);
  void adam_before(const OpRef& op);
  void step_begin(int r, int step);
  void step_end(int r);
  void judge_step_end(int r);
  // `restored`: the transition that is there again; -1 for a step.
  void pass_transition(int r, int restored);
  void check_ownership(int r);
  void check_replicas(int step);
  // Takes up what was reported at the point that was judged.
  void settle() {
    if (!point_.empty()) settle_found();
  }
  void settle_found();

  Judging judging_;
  std::vector<RankState> ranks_;
  // Every transition of the main params so far: -1 for a taken step, otherwise the transition it restores.
  std::vector<int> transitions_;
  std::vector<Violation> point_;  // found at the point being judged
  Verdicts verdicts_;
  std::vector<uint64_t>
      owned_;  // by param: sum over owners of end - begin, hashed so that only a partition adds up
  std::vector<int> ended_;  // ranks that ended each step
};

}  // namespace gatherfuzz
