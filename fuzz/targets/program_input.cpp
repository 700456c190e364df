#include "fuzz/targets/program_input.h"

#include <algorithm>
#include <cstdlib>

#include "fuzz/campaign.h"
#include "fuzz/exit_code.h"
#include "fuzz/failure_block.h"
#include "fuzz/output.h"
#include "fuzz/targets/abort_with_class.h"
#include "fuzz/targets/state_counters.h"
#include "properties/generator.h"

namespace gatherfuzz {

namespace {

constexpr char kFaultVariable[] = "GATHERFUZZ_FAULT";

const std::optional<FaultSpec>& planted_fault() {
  static const std::optional<FaultSpec> fault = []() -> std::optional<FaultSpec> {
    const char* text = std::getenv(kFaultVariable);
    if (text == nullptr || *text == '\0') return std::nullopt;
    try {
      return parse_fault(text);
    } catch (const UsageError& error) {
      print_note(std::string(kFaultVariable) + ": " + error.what());
      std::exit(kExitUsage);
    }
  }();
  return fault;
}

// About what a run on the host costs: multiplications, and for each module's pass as many more as its ops
// cost beside them.
double work_of(const Flags& f, int passes, int microbatches) {
  constexpr double kWorkOfPass = 10'000;
  const double hidden = f.hidden_size, tokens = 1.0 * f.seq_length * f.micro_batch_size;
  const double layer = hidden * (4 * hidden + 3.0 * f.ffn_hidden_size + 2.0 * f.seq_length);
  const double model = f.num_layers * layer + 2 * hidden * f.vocab_size;
  return 1.0 * f.data_parallel_size * passes * microbatches *
         (tokens * model + (f.num_layers + 2) * kWorkOfPass);
}

// Parsed programs may be a thousand steps of a large model. The corpus and what is generated is far below.
bool is_small(const Program& program) {
  int passes = training_steps(program), microbatches = program.flags.num_microbatches;
  for (const Action& action : program.actions) {
    if (action.kind == ActionKind::evaluate) passes += action.count;
    if (action.kind == ActionKind::rerun_forward_backward) ++passes;
    if (action.kind == ActionKind::set_microbatches) microbatches = std::max(microbatches, action.count);
  }
  Flags most;
  most.data_parallel_size = 8;
  return work_of(program.flags, passes, microbatches) <= work_of(most, 2 * kMostGeneratedSteps, 1);
}

}  // namespace

std::optional<Program> program_input(const uint8_t* data, std::size_t size) {
  ParseResult parsed = parse_program({reinterpret_cast<const char*>(data), size});
  if (!parsed.ok() || !parsed.program->faults.empty() || !is_small(*parsed.program)) return std::nullopt;
  parsed.program->expect.reset();
  if (planted_fault()) parsed.program->faults = {*planted_fault()};
  return std::move(parsed.program);
}

void judge_input(const Program& program, RuntimeKind runtime) {
  RunOptions options;
  options.runtime = runtime;
  const Outcome outcome = run_program(program, options);
  count_states(outcome.states);
  if (outcome.verdict != Verdict::fail) return;
  Failure failure;
  {
    Worker worker;  // gone before the abort, which takes no destructor with it
    failure = examine(worker, program, runtime, outcome);
  }
  failure.found_by = "a fuzz target";
  failure.file = "FILE";
  print_note(failure_text(failure));
  if (planted_fault())
    print_note(std::string("The fault came from ") + kFaultVariable + ": FILE needs its line, too.");
  abort_with_class(*outcome.failure);
}

}  // namespace gatherfuzz
