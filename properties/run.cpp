#include "properties/run.h"

#include <algorithm>
#include <chrono>

#include "properties/fault.h"
#include "properties/host_monitor.h"
#include "properties/program_lines.h"
#include "properties/run_rank.h"
#include "properties/symbolic_monitor.h"
#include "properties/twin.h"

namespace gatherfuzz {

namespace {

MemoryKind memory_of(RuntimeKind kind) {
  return kind == RuntimeKind::symbolic ? MemoryKind::symbolic : MemoryKind::host;
}

// A pass of a module takes at most some tens of ops, a step some hundreds beside; nothing legal comes near
// this.
uint64_t implied_budget(const Program& program, const Plan& plan) {
  const auto ranks = static_cast<uint64_t>(program.flags.data_parallel_size);
  const auto modules = static_cast<uint64_t>(program.flags.num_layers + 2);
  uint64_t passes = static_cast<uint64_t>(plan.evaluations);
  passes += 2 * static_cast<uint64_t>(plan.rerun_microbatches);
  for (const PlannedStep& step : plan.steps) passes += 2 * static_cast<uint64_t>(step.microbatches);
  return ranks * (passes * modules * 200 + (plan.steps.size() + program.actions.size() + 1) * 10'000);
}

WorldOptions world_options(const Program& program, const Plan& plan, const RunOptions& options) {
  WorldOptions w;
  w.ranks = program.flags.data_parallel_size;
  w.memory = memory_of(options.runtime);
  w.schedule = program.flags.schedule;
  w.schedule_seed = program.flags.schedule_seed;
  for (const Delay& d : program.delays)
    w.delays.push_back({d.stream == StreamName::compute ? "compute" : "comm", d.op, d.by});
  w.op_budget = options.op_budget.value_or(implied_budget(program, plan));
  return w;
}

uint64_t signature_of(const Outcome& outcome) {
  uint64_t hash = term_of(std::string(name_of(*outcome.failure)).c_str());
  std::string text = outcome.op + " " + outcome.what;
  for (const char c : text)
    if (c < '0' || c > '9') hash = mix(hash, static_cast<uint64_t>(c));
  return hash >> 32;
}

void fail(Outcome& outcome, FailureClass failure, std::string text) {
  outcome.verdict = Verdict::fail;
  outcome.failure = failure;
  outcome.text = std::move(text);
}

void add_also(Outcome& outcome, FailureClass failure) {
  if (failure != outcome.failure &&
      std::find(outcome.also.begin(), outcome.also.end(), failure) == outcome.also.end())
    outcome.also.push_back(failure);
}

// What flags and actions imply must have happened, or the pass proves nothing.
std::string missing(const Program& program, const Plan& plan, const Happened& h) {
  if (plan.steps.empty()) return "";
  const Flags& f = program.flags;
  if (h.steps == 0) return "no optimizer step was taken";
  if (h.replays < plan.replays) return "a step that should replay a captured graph did not";
  if (h.optimizer_replays < plan.optimizer_replays)
    return "an optimizer step that should replay a captured graph did not";
  if (f.data_parallel_size > 1 && h.gathers == 0) return "no parameter was gathered";
  if (model_is_mxfp8_gather(f) && h.casts == 0) return "no MXFP8 weight was quantized";
  if (!h.nonzero_gradient) return "every gradient was zero";
  if (h.weights_compared == 0) return "no weight was compared";
  if (h.gradients_compared == 0) return "no gradient was compared";
  return "";
}

// Whether the program's first `count` actions have these among them, in this order.
bool are_before(const std::vector<ActionKind>& actions, const Program& program, std::size_t count) {
  auto wanted = actions.begin();
  for (std::size_t i = 0; i < count && wanted != actions.end(); ++i)
    if (program.actions[i].kind == *wanted) ++wanted;
  return wanted == actions.end();
}

std::unique_ptr<Monitor> make_monitor(World& world, const Program& program, const Plan& plan,
                                      const RunOptions& options, const Dataset& dataset) {
  if (options.runtime == RuntimeKind::symbolic)
    return std::make_unique<SymbolicMonitor>(world, program, plan, options.judging);
  return std::make_unique<HostMonitor>(world, program, plan, options.judging, dataset, options.start);
}

// One run in one world; judged, without the twin.
struct SingleRun {
  Outcome outcome;
  std::vector<std::vector<StepTrace>> traces;  // by rank
};

SingleRun run_once(const Program& program, const Plan& plan, const RunOptions& options) {
  SingleRun result;
  Outcome& outcome = result.outcome;
  World world(world_options(program, plan, options));
  std::optional<Dataset> synthetic;
  if (options.dataset == nullptr) {
    synthetic = Dataset::synthetic(program.flags.vocab_size, program.flags.seed);
    if (program.flags.calculate_per_token_loss) synthetic = std::move(*synthetic).with_masked_targets();
  }
  const Dataset& dataset = options.dataset != nullptr ? *options.dataset : *synthetic;
  std::vector<RankModels> models(static_cast<std::size_t>(world.ranks()));
  std::vector<int> host_steps(models.size(), 0);
  StateCollector collector(world.ranks(), static_cast<int>(plan.steps.size()));
  const std::unique_ptr<Monitor> monitor = make_monitor(world, program, plan, options, dataset);
  std::optional<Recorder> recorder;
  if (options.story) recorder.emplace(world, *monitor, [&](int r) { return monitor->iteration(r); });
  world.set_observer(recorder ? static_cast<Observer*>(&*recorder) : monitor.get());

  std::optional<FaultPlanter> planter;
  if (!program.faults.empty()) {
    FaultPlanter::Clock clock;
    clock.executing = [&](int r) { return monitor->iteration(r); };
    clock.issuing = [&](int r) { return host_steps[static_cast<std::size_t>(r)] + 1; };
    clock.replays_with_hooks_off = [&](int iteration) {
      const PlannedStep& step = plan.steps[static_cast<std::size_t>(iteration) - 1];
      return step.replays && !step.hooks;
    };
    clock.comes_after = [&](int iteration, const std::vector<ActionKind>& actions) {
      const auto next = static_cast<std::size_t>(iteration) - 1;  // past the last step when no more comes
      return are_before(actions, program,
                        next < plan.steps.size() ? plan.steps[next].action : program.actions.size());
    };
    planter.emplace(world, program.faults, clock, [&](const std::string& name) {
      const std::vector<ParamInfo> params = model_params(model_config(program.flags));
      for (std::size_t p = 0; p < params.size(); ++p)
        if (params[p].name == name) return static_cast<int>(p);
      return -1;
    });
    world.set_interposer(&*planter);
  }

  try {
    world.run([&](Runtime& runtime) {
      const auto r = static_cast<std::size_t>(runtime.rank());
      RankProgram host_code(runtime, program, options, dataset, *monitor, models[r],
                            models[0].empty() ? nullptr : models[0].front().get(), host_steps[r], collector);
      host_code.run();
      if (r == 0) outcome.states = host_code.states();
    });
  } catch (const RuntimeError& error) {
    fail(outcome,
         error.error() == Error::illegal_address ? FailureClass::use_after_free : FailureClass::capture_error,
         error.what());
    outcome.iteration = *std::max_element(host_steps.begin(), host_steps.end()) + 1;  // where host code is
  } catch (const Deadlock& deadlock) {
    fail(outcome, FailureClass::deadlock, deadlock.who_waits_for_whom);
  } catch (const OutOfBudget&) {
    fail(outcome, FailureClass::timeout,
         "the program used up its budget of " +
             std::to_string(world_options(program, plan, options).op_budget) + " ops");
  } catch (const WeightsDiffer& error) {
    fail(outcome, FailureClass::replica_differs, error.what());
  } catch (const NonfiniteGradient& error) {
    outcome.verdict = Verdict::refused;
    outcome.reason = RefusalReason::nonfinite_grad;
    outcome.text = error.what();
  }

  if (monitor->verdicts().any()) {
    const Violation& first = monitor->verdicts().first();
    fail(outcome, first.failure, first.text);
    outcome.op = first.op;
    outcome.what = first.what;
    outcome.rank = first.rank;
    outcome.iteration = first.iteration;
    outcome.expected = first.expected;
    outcome.found = first.found;
    if (recorder) {
      const std::vector<ParamInfo> params = model_params(model_config(program.flags));
      outcome.story = recorder->tell(first, [&](uint16_t tag) { return params[tag - 1u].name; });
    }
    for (const Violation& other : monitor->verdicts().found) add_also(outcome, other.failure);
  } else if (outcome.verdict == Verdict::fail && outcome.iteration == 0) {
    outcome.iteration = monitor->iteration(0);
  }
  if (planter && outcome.verdict != Verdict::fail) {
    const std::vector<std::string> idle = planter->never_fired();
    if (!idle.empty()) {
      outcome.verdict = Verdict::error;
      outcome.text = "this fault never met an op to change: " + idle.front();
    }
  }
  if (outcome.verdict == Verdict::pass && options.judging != Judging::none) {
    outcome.text = missing(program, plan, monitor->happened());
    if (!outcome.text.empty()) outcome.verdict = Verdict::vacuous;
  }
  outcome.steps = monitor->steps_ended(0);
  outcome.ops = world.ops_executed();
  outcome.weights_compared = monitor->happened().weights_compared;
  outcome.gradients_compared = monitor->happened().gradients_compared;
  outcome.worst_share = monitor->worst_share();
  if (const auto* host = dynamic_cast<const HostMonitor*>(monitor.get())) outcome.shares = host->shares();
  for (int r = 0; r < world.ranks(); ++r) result.traces.push_back(monitor->traces(r));
  world.set_observer(nullptr);
  world.set_interposer(nullptr);
  return result;
}

// The number that differs first in one step. What ranks hold of the main params depends on how buckets are
// cut, so that their sum is compared.
std::optional<TraceDifference> difference(const SingleRun& a, const SingleRun& b, std::size_t step,
                                          std::size_t& rank) {
  uint64_t main_a = 0, main_b = 0;
  for (rank = 0; rank < a.traces.size(); ++rank) {
    const StepTrace &x = a.traces[rank][step], &y = b.traces[rank][step];
    main_a += x.main_params;
    main_b += y.main_params;
    if (const auto differs = difference(x, y)) return differs;
  }
  rank = 0;
  if (main_a == main_b) return std::nullopt;
  return TraceDifference{"main params", ""};
}

void differs(Outcome& outcome, const Twin& twin, const TraceDifference& what, std::size_t rank,
             std::size_t step) {
  if (outcome.verdict == Verdict::fail) return add_also(outcome, twin.failure);
  fail(outcome, twin.failure,
       std::string("the ") + what.what + " differs from that of " + twin_text(twin) +
           (what.values.empty() ? "" : ": " + what.values));
  outcome.op = twin_table()[static_cast<std::size_t>(twin.kind)].name;
  outcome.what = what.what;
  outcome.rank = static_cast<int>(rank);
  outcome.iteration = static_cast<int>(step) + 1;
}

// A run that ended early is compared as far as it came.
void compare_with_twin(const Twin& twin, const RunOptions& options, SingleRun& run) {
  RunOptions only_traces = options;
  only_traces.judging = Judging::none;
  only_traces.story = false;
  only_traces.on_step = nullptr;
  only_traces.restart_at_save = twin.kind == TwinKind::resumed;
  const SingleRun other = run_once(twin.program, twin.plan, only_traces);
  run.outcome.ops += other.outcome.ops;
  run.outcome.twin = twin.kind;
  std::size_t steps = run.traces[0].size(), there = other.traces[0].size();
  for (const auto& traces : run.traces) steps = std::min(steps, traces.size());
  for (const auto& traces : other.traces) there = std::min(there, traces.size());
  if (other.outcome.verdict != Verdict::pass || there < steps)
    return differs(run.outcome, twin, {"end", "here it came, there " + other.outcome.text}, 0, there);
  for (std::size_t s = 0; s < steps; ++s) {
    std::size_t rank = 0;
    if (const auto what = difference(run, other, s, rank)) return differs(run.outcome, twin, *what, rank, s);
  }
}

}  // namespace

Outcome run_program(const Program& program, const RunOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Outcome outcome;
  if (const std::optional<Refusal> refusal = refusal_before_run(program)) {
    outcome.verdict = Verdict::refused;
    outcome.reason = refusal->reason;
    outcome.text = refusal->text;
    return outcome;
  }
  const Plan plan = options.start != nullptr
                        ? plan_program(program, {options.start->batch, options.start->microbatches})
                        : plan_program(program);
  SingleRun run = run_once(program, plan, options);
  const bool comparable = run.outcome.verdict == Verdict::pass || run.outcome.verdict == Verdict::fail;
  // What its own oracles have found needs no twin, unless the program names one.
  const bool compare = run.outcome.verdict == Verdict::pass || program.twin;
  if (options.twin && comparable && compare)
    if (const std::optional<Twin> twin = choose_twin(program, plan, options.runtime == RuntimeKind::host))
      compare_with_twin(*twin, options, run);
  outcome = std::move(run.outcome);
  if (outcome.failure) outcome.signature = signature_of(outcome);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

bool as_expected(const Program& program, Outcome& outcome, RuntimeKind runtime) {
  if (!program.expect) return outcome.verdict == Verdict::pass || outcome.verdict == Verdict::refused;
  const Expectation& e = *program.expect;
  if (e.verdict == Verdict::fail && e.failure) {
    // `wrong-loss` needs numbers.
    if (*e.failure == FailureClass::wrong_loss && runtime == RuntimeKind::symbolic &&
        outcome.verdict != Verdict::fail) {
      outcome.verdict = Verdict::skipped;
      return true;
    }
    if (outcome.verdict != Verdict::fail) return false;
    return *outcome.failure == *e.failure ||
           std::find(outcome.also.begin(), outcome.also.end(), *e.failure) != outcome.also.end();
  }
  if (e.verdict != outcome.verdict) return false;
  return e.verdict != Verdict::refused || !e.reason || outcome.reason == e.reason;
}

}  // namespace gatherfuzz
