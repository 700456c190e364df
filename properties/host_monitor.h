// The oracles on real numbers: one-hop comparisons of the implementation's own state with the reference.
#pragma once

#include <map>
#include <span>

#include "properties/monitor.h"
#include "reference/lr_schedule.h"
#include "reference/trainer.h"

namespace gatherfuzz {

// The largest share of its bound that each kind of comparison used in one step, over ranks. Where the bound
// is zero (bits), 0 or infinity.
struct StepShares {
  double weights = 0.0;   // hop 1: bytes
  double loss = 0.0;      // hop 2
  double gradient = 0.0;  // hop 2: of each parameter, L2
  double reduced = 0.0;   // hop 3: bits
  double norm = 0.0;      // hop 4
};

class HostMonitor : public Monitor {
 public:
  HostMonitor(World& world, const Program& program, const Plan& plan, Judging judging, const Dataset& dataset,
              const TrainingState* start = nullptr);

  const std::vector<StepShares>& shares() const { return shares_; }

 private:
  // Main params and moments at one version, by param.
  struct Version {
    std::vector<std::vector<float>> main, exp_avg, exp_avg_sq;
    int adam_steps = 0;
  };
  // The bytes that a weight's planes must hold, by Plane.
  struct WeightBytes {
    std::vector<std::byte> planes[6];
  };
  using Pass = reference::LossAndGradients<float>;
  // One rank's part in the step it is in.
  struct Local {
    int step = -1;
    std::vector<std::vector<float>> gradients;  // by param, as they were after the last accumulation
    std::vector<std::optional<Pass>> passes;    // the reference's, by microbatch
  };
  // What all ranks came to in one step.
  struct Common {
    std::vector<std::vector<float>> reduced;  // by param, empty until first asked for
    float norm = 0.0f;
    std::optional<int> tokens;                 // of all ranks that count
    std::vector<std::optional<float>> losses;  // by rank: the reference's, mean over microbatches or sum
  };

  void check_weight(const OpRef& op, const Operand& operand, Plane plane, uint32_t param) override;
  void check_clean(const OpRef& op, const Operand& grad, uint32_t param) override;
  void accumulated(const OpRef& op, const Operand& grad, uint32_t param, int times) override;
  void check_reduced(const OpRef& op, const Shard& shard, const Operand& reduced) override;
  void check_norm(const OpRef& op, const Operand& norm) override;
  void check_state(int rank, FailureClass failure) override;
  void check_losses(int rank) override;
  uint64_t fingerprint(int rank, const Operand& operand) override;
  uint64_t main_fingerprint(int rank) override;
  std::optional<float> number(int rank, const Operand& operand) override;
  bool is_zero_gradient(int rank, const Operand& operand) override;
  void take_step(int step) override;
  void restore(int to) override;

  HostMemory& memory(int r) { return world_.host()[static_cast<std::size_t>(r)]; }
  const Version& version(int v);
  void prune();
  WeightBytes expected_bytes(const std::vector<float>& staged, const reference::PreparedWeight<float>& weight,
                             uint32_t param) const;
  std::vector<float> staged(const std::vector<float>& main) const;
  bool stored_as_planes(uint32_t param) const;
  const reference::Prepared<float>& prepared(int v);
  Local& local(int rank);
  Common& common(int step);
  reference::Batch batch_of(int step, int rank, int microbatch) const;
  int tokens_of(int step);
  const Pass& reference_pass(int rank, int microbatch);
  void compare_gradient(const OpRef& op, uint32_t param, const std::vector<float>& found);
  const std::vector<float>* reduced(int step, uint32_t param);
  std::vector<float> reduce(std::vector<std::vector<float>> by_rank, int step);
  std::vector<float> over_ranks(std::vector<std::vector<float>> by_rank) const;
  void divide_by_tokens(std::vector<float>& gradient, int step);
  std::string reduced_text(const ShardPiece& piece, std::span<const float> found,
                           const std::vector<float>* expected, int step);
  bool has_scales_of_zeros(int rank, const Operand& scales, Plane plane, uint32_t param);
  std::vector<float> values_of(int rank, const Operand& operand);
  // Notes the share of a bound used; true if it is not over 1.
  bool use_share(double StepShares::*hop, int rank, double share);

  const Dataset& dataset_;
  const TrainingState* start_;  // null: a fresh model
  reference::Shape shape_;
  std::vector<reference::ParamShape> params_;
  reference::TrainSettings settings_;
  reference::LrSchedule lr_schedule_;
  reference::Model model_;
  std::map<int, Version> versions_;  // the latest few, and the one that a warmup saved
  int latest_ = 0;
  int bytes_version_ = -1;
  std::vector<WeightBytes> bytes_;
  int prepared_version_ = -1;
  reference::Prepared<float> prepared_;
  std::vector<Local> local_;
  std::map<int, Common> common_;    // of the latest two steps
  std::vector<StepShares> shares_;  // by step
};

}  // namespace gatherfuzz
