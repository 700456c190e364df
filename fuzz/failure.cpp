#include "fuzz/failure.h"

#include "fuzz/version.h"
#include "properties/program_lines.h"

namespace gatherfuzz {

namespace {

constexpr int kReproductions = 3;

// "NAME DEFAULT" of every flag with which alone, at its default, the program passes. Where the flag set would
// need repair the run is refused, and with a planted fault a run in which the fault meets no op says nothing:
// both are left out. The program must name its twin, as that of another flag set is another one.
std::vector<std::string> single_flags_that_pass(Worker& worker, const Program& program, RuntimeKind runtime) {
  std::vector<std::string> found;
  for (const FlagInfo& info : flag_table()) {
    if (info.get(program.flags) == info.get(Flags{})) continue;
    Program other = program;
    info.set(other.flags, info.get(Flags{}));
    if (worker.run(other, runtime).verdict == Verdict::pass)
      found.push_back(std::string(info.name) + " " + info.default_text());
  }
  return found;
}

}  // namespace

bool alike(const Outcome& a, const Outcome& b) {
  return a.failure == b.failure && a.signature == b.signature;
}

Program with_its_twin(Program program, const Outcome& outcome) {
  if (outcome.twin && outcome.failure == twin_table()[static_cast<std::size_t>(*outcome.twin)].failure)
    program.twin = TwinSpec{*outcome.twin, {}};
  return program;
}

Shrunk shrink_failure(Worker& worker, const Program& program, RuntimeKind runtime, const Outcome& outcome,
                      ShrinkLimit limit) {
  // Each candidate beside the same twin: that of its own hash would be another one, and the end a matter of
  // luck.
  Shrunk shrunk = shrink(
      with_its_twin(program, outcome),
      [&](const Program& candidate) {
        return alike(worker.run(with_its_twin(candidate, outcome), runtime), outcome);
      },
      limit);
  shrunk.program = with_its_twin(std::move(shrunk.program), outcome);
  return shrunk;
}

Failure examine(Worker& worker, const Program& program, RuntimeKind runtime, const Outcome& outcome) {
  Failure failure;
  failure.runtime = runtime;
  failure.outcome = outcome;
  failure.original = failure.program = program;
  failure.tried = kReproductions;
  for (int i = 0; i < kReproductions; ++i) {
    const Outcome again = worker.run(failure.program, runtime, true);
    if (!alike(again, outcome)) continue;
    ++failure.reproduced;
    failure.outcome = again;
  }
  failure.passes_with = single_flags_that_pass(worker, with_its_twin(program, outcome), runtime);
  return failure;
}

Failure investigate(Worker& worker, const Program& program, RuntimeKind runtime, const Outcome& outcome,
                    ShrinkLimit limit) {
  const Program original = with_its_twin(program, outcome);
  Failure failure =
      examine(worker, shrink_failure(worker, original, runtime, outcome, limit).program, runtime, outcome);
  failure.original = original;
  return failure;
}

std::string stored_text(Program program, const Failure& failure) {
  program.top_comments.push_back(" Found by " + failure.found_by + ". " + version_text());
  return print_program(program);
}

}  // namespace gatherfuzz
