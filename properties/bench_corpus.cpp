#include "properties/bench_corpus.h"

#include <algorithm>
#include <cmath>

#include "properties/generator.h"
#include "properties/plan.h"

namespace gatherfuzz {

namespace {

// The same model for all: small, in two buckets, on two ranks.
void fix_shape(Flags& f) {
  f.num_layers = 2;
  f.data_parallel_size = 2;
  f.overlap_grad_reduce = true;  // without it there is one bucket
  f.num_buckets = 2;
  f.bucket_size.reset();
  f.hidden_size = 32;
  f.ffn_hidden_size = 32;
  f.num_attention_heads = 2;
  f.untie_embeddings_and_output_weights = true;
  f.micro_batch_size = 1;
  f.seq_length = 32;
  f.vocab_size = 32;
  f.check_for_nan_in_grad = false;  // it would end a run
  repair_flags(f);
}

bool ends_refused(const Program& program) {
  if (refusal_before_run(program)) return true;
  if (!program.flags.check_for_nan_in_grad) return false;
  for (const Action& action : program.actions) {
    if (action.kind == ActionKind::inject_nonfinite && action.where == InjectionPlace::grad) return true;
  }
  return false;
}

Program generate_bench_program(Choices& choices) {
  Program program;
  program.flags = generate_flags(choices);
  fix_shape(program.flags);
  program.actions = generate_actions(choices, program.flags);
  return program;
}

}  // namespace

std::vector<Program> bench_programs() {
  std::vector<Program> programs;
  for (uint64_t seed = 0; programs.size() < kBenchPrograms; ++seed) {
    RandomChoices choices(seed);
    Program program = generate_bench_program(choices);
    const Plan plan = plan_program(program);
    const bool replay = programs.size() % 2 == 1;
    const bool evaluate = programs.size() / 2 % 4 == 3;
    const bool wanted = (plan.replays > 0) == replay && (plan.evaluations > 0) == evaluate;
    if (wanted && plan.taken_steps > 0) programs.push_back(std::move(program));
  }
  return programs;
}

BenchFigures bench_figures(const std::vector<Program>& programs) {
  BenchFigures figures;
  double squares = 0.0;
  for (const Program& program : programs) {
    const Flags& f = program.flags;
    const Plan plan = plan_program(program);
    ++figures.programs;
    figures.legal += !ends_refused(program);
    figures.replaying += plan.replays > 0;
    figures.evaluating += plan.evaluations > 0;
    figures.mxfp8 += f.fp8_recipe == Recipe::mxfp8;
    figures.fitting +=
        f.num_layers == 2 && f.data_parallel_size == 2 && f.num_buckets == 2 && f.overlap_grad_reduce;
    const double steps = training_steps(program);
    figures.mean_steps += steps;
    squares += steps * steps;
  }
  if (figures.programs == 0) return figures;
  figures.mean_steps /= figures.programs;
  figures.steps_deviation =
      std::sqrt(std::max(0.0, squares / figures.programs - figures.mean_steps * figures.mean_steps));
  return figures;
}

}  // namespace gatherfuzz
