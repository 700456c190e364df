// Runs one program on one runtime and judges it by every oracle.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "impl/kernels/dataset.h"
#include "impl/runtime/local/world.h"
#include "impl/training/training_state.h"
#include "properties/host_monitor.h"
#include "properties/monitor.h"
#include "properties/program.h"
#include "properties/story.h"

namespace gatherfuzz {

enum class RuntimeKind : uint8_t { symbolic, host };
inline constexpr std::string_view kRuntimeNames[] = {"symbolic", "host"};
constexpr std::string_view name_of(RuntimeKind kind) {
  return kRuntimeNames[static_cast<size_t>(kind)];
}

// What a caller may see of one step, as the ranks' host code ends it (host only): for training curves.
struct StepReport {
  int step = 0;       // from 0
  float loss = 0.0f;  // mean over ranks and microbatches
  float norm = 0.0f;
  bool taken = true;
};

struct RunOptions {
  RuntimeKind runtime = RuntimeKind::symbolic;
  // One op a kernel, or one op a module's pass. By default fine on host and coarse on symbolic.
  std::optional<bool> coarse;
  bool twin = true;  // also run the program's twin (twin.h), where it has one, and compare
  Judging judging = Judging::stop_at_first;
  bool story = false;                 // also keep every op, and tell what led to a failure
  const Dataset* dataset = nullptr;   // default: synthetic
  std::optional<uint64_t> op_budget;  // default: many times what the program implies
  // Called on rank 0's host code after each step; makes the host wait for every step.
  std::function<void(const StepReport&)> on_step;
  // At the first save_checkpoint a fresh model takes over, and loads it. Only unjudged: its weights are read
  // before anybody expects them.
  bool restart_at_save = false;
  // Where to go on from, instead of a fresh model (host only).
  const TrainingState* start = nullptr;
  // Called with the state of all ranks after every `state_every` steps and the last one (host only).
  int state_every = 0;
  std::function<void(const TrainingState&)> on_state;
};

struct Outcome {
  Verdict verdict = Verdict::pass;
  std::optional<FailureClass> failure;
  std::vector<FailureClass> also;
  std::optional<RefusalReason> reason;
  std::string text;  // for people: what was found, or why refused, or what did not happen
  std::string op;    // where a failure was seen
  std::string what;
  int rank = 0;
  int iteration = 0;
  std::optional<TwinKind> twin;  // that was run beside it
  uint64_t signature = 0;        // of a failure: class, op and what, without numbers
  std::string expected, found;   // of a failure that looked at bytes
  Story story;                   // if it was asked for
  int steps = 0;                 // training steps that ran to their end
  uint64_t ops = 0;              // executed, twin included
  uint64_t gradients_compared = 0;
  uint64_t weights_compared = 0;
  double worst_share = 0.0;
  std::vector<uint32_t> states;    // StateCoverage of rank 0's host code, if it came to its end
  std::vector<StepShares> shares;  // host: by step
  double seconds = 0.0;
};

Outcome run_program(const Program& program, const RunOptions& options);

// Whether the outcome is what the program's `expect` says (without one: pass or refused). A class that the
// runtime cannot judge turns the verdict into `skipped`.
bool as_expected(const Program& program, Outcome& outcome, RuntimeKind runtime);

}  // namespace gatherfuzz
