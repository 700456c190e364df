#include "fuzz/targets/program_input.h"

#include <algorithm>

#include "fuzz/campaign_inputs.h"
#include "fuzz/engine_messages.h"
#include "fuzz/failure_block.h"
#include "fuzz/output.h"
#include "fuzz/targets/abort_with_class.h"
#include "fuzz/targets/environment.h"
#include "fuzz/targets/report_input.h"
#include "fuzz/targets/state_counters.h"
#include "properties/generator.h"

namespace gatherfuzz {

namespace {

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
  if (!parsed.ok() || !parsed.program->faults.empty()) return std::nullopt;
  Program& program = *parsed.program;
  program.expect.reset();
  if (!flags_of_all().empty() && !give_flags(program, flags_of_all())) return std::nullopt;
  if (!is_small(program)) return std::nullopt;
  if (planted_fault()) program.faults = {*planted_fault()};
  return std::move(program);
}

void judge_input(const Program& program, RuntimeKind runtime) {
  if (const std::optional<int> socket = report_socket()) return report_input(*socket, program, runtime);
  RunOptions options;
  options.runtime = runtime;
  const Outcome outcome = run_program(program, options);
  if (outcome.verdict != Verdict::fail) return count_states(outcome.states);
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
