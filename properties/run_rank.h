// One rank's host code for a whole program: single-rank code against the Runtime contract, with marks for the
// oracles.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "impl/training/loop.h"
#include "properties/marks.h"
#include "properties/run.h"
#include "properties/states.h"

namespace gatherfuzz {

// The state of a run, to which each rank's host code adds its part. A rank cannot be a step ahead of
// another's part: steps end with collectives.
class StateCollector {
 public:
  StateCollector(int ranks, int steps) : ranks_(ranks), steps_(steps) {}

  // Whether the state is wanted after so many steps.
  bool wanted(const RunOptions& options, int steps) const {
    return options.on_state &&
           (steps == steps_ || (options.state_every > 0 && steps % options.state_every == 0));
  }
  void add(TrainingLoop& loop, const RunOptions& options) {
    loop.copy_state_to_host(state_);
    if (++added_ % ranks_ == 0) options.on_state(state_);
  }

 private:
  int ranks_;
  int steps_;
  int added_ = 0;
  TrainingState state_;
};

using RankModels = std::vector<std::unique_ptr<TrainStep>>;

class RankProgram {
 public:
  // Puts the models that the rank builds, most often one, into `models`, which outlives the host code:
  // observers still look at them. `steps` counts the training steps that this host code has issued. `like`:
  // another rank's model, or null.
  RankProgram(Runtime& runtime, const Program& program, const RunOptions& options, const Dataset& dataset,
              Monitor& monitor, RankModels& models, const TrainStep* like, int& steps,
              StateCollector& collector);

  void run();
  // What host state it went through; none on other ranks than 0, and of a run that is not judged.
  std::vector<uint32_t> states() { return states_.take(); }

 private:
  void build(const TrainStep* like, LoopSnapshots snapshots);
  void apply(const Action& action);
  void save(const std::string& name);
  void load(const std::string& name);
  void restart_from(const std::string& name);
  void look(ActionKind action);
  void train(int count);
  void tell(bool taken);
  void mark(MarkCode code, int detail);

  Runtime& runtime_;
  const Program& program_;
  const RunOptions& options_;
  const Dataset& dataset_;
  Monitor& monitor_;
  RankModels& models_;
  TrainStep* step_ = nullptr;
  std::optional<TrainingLoop> loop_;
  int& steps_;
  StateCollector& collector_;
  StateCoverage states_;
  std::map<std::string, int> slots_;  // of marks: a checkpoint's number
};

}  // namespace gatherfuzz
