// The plan of a program: what its flags and actions imply, worked out from the language's meaning table
// without running the implementation. Oracles take their expectations from here, never from the host state of
// what they judge.
#pragma once

#include <cstdint>
#include <vector>

#include "properties/program.h"

namespace gatherfuzz {

struct PlannedInjection {
  int rank = 0;
  InjectionPlace where = InjectionPlace::grad;
};

// One training step, numbered from 0 over the program.
struct PlannedStep {
  std::size_t action = 0;  // of the program, from 0
  uint32_t batch = 0;
  int microbatches = 1;
  std::vector<PlannedInjection> injections;  // at most one a rank
  bool skipped = false;                      // an injection makes every rank skip (skips_nonfinite)
  bool hooks = true;                         // on when the step begins
  bool replays = false;                      // forward and backward run as a replay of a captured graph
  bool gathers = false;                      // the work contains the all-gather
  bool optimizer_replays = false;            // the optimizer step runs as a replay of a captured graph

  bool injected() const { return !injections.empty(); }
  // Whether this rank's own gradients hold an infinity.
  bool grad_injected(int rank) const;
};

struct Plan {
  std::vector<PlannedStep> steps;
  int taken_steps = 0;
  int replays = 0;
  int optimizer_replays = 0;
  int gathering_steps = 0;
  int evaluations = 0;  // forward passes
  int rerun_microbatches = 0;
};

// Where a program begins: a fresh model at batch 0, or what a checkpoint says.
struct PlanStart {
  uint32_t batch = 0;
  int microbatches = 1;
};

// For programs that refusal_before_run lets pass.
Plan plan_program(const Program& program);
Plan plan_program(const Program& program, const PlanStart& start);

}  // namespace gatherfuzz
