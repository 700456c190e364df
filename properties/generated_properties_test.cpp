// What holds of every generated, mutated, spliced and shrunk program, as RapidCheck properties.
// Counterexamples are shrunk by the project's own shrinker.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "properties/generator.h"
#include "properties/mutate.h"
#include "properties/run.h"
#include "properties/shrink.h"

namespace gatherfuzz {
namespace {

uint64_t any_seed() {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<uint64_t>());
}

rc::Gen<Program> generated() {
  return [](const rc::Random& random, int) {
    rc::Random source = random;
    RandomChoices choices(source.next());
    return rc::shrinkable::shrinkRecur(generate_program(choices),
                                       [](const Program& p) { return rc::seq::fromContainer(simpler(p)); });
  };
}

// A program after a few generations of mutants and splices of two.
Program evolved(const rc::Gen<Program>& drawn) {
  Program program = *drawn;
  const Program other = *drawn;
  RandomChoices choices(any_seed());
  for (int i = pick_between(choices, 1, 6, "generations"); i > 0; --i)
    program = flip(choices, 30, "splice") ? splice(program, other, choices) : mutate(program, choices);
  return program;
}

void assert_sound(const Program& program) {
  const std::string text = print_program(program);
  RC_LOG() << text;
  const ParseResult parsed = parse_program(text);
  RC_ASSERT(parsed.ok());
  RC_ASSERT(*parsed.program == program);
  RC_ASSERT(!refusal_before_run(program));
  RC_ASSERT(program.faults.empty());
  RC_ASSERT(!program.expect);
  RC_ASSERT(training_steps(program) <= kMostGeneratedSteps + 2);
}

// With the deliberate refusal that check_for_nan_in_grad makes of an injection.
void assert_clean(const Program& program) {
  RC_LOG() << print_program(program);
  const Outcome outcome = run_program(program, {});
  RC_LOG() << outcome.text;
  const bool refused = outcome.verdict == Verdict::refused && program.flags.check_for_nan_in_grad;
  RC_ASSERT(outcome.verdict == Verdict::pass || refused);
}

RC_GTEST_PROP(Programs, GeneratedAreSoundAndPass, ()) {
  const Program program = *generated();
  assert_sound(program);
  assert_clean(program);
}

RC_GTEST_PROP(Programs, MutantsAndSplicesAreSoundAndPass, ()) {
  const Program program = evolved(generated());
  assert_sound(program);
  assert_clean(program);
}

// Each number of a size is at least 0 and sizes are compared as sequences, so no chain of candidates is
// endless.
RC_GTEST_PROP(Programs, CandidatesAreSmallerAndSound, ()) {
  const Program program = evolved(rc::gen::noShrink(generated()));
  const ProgramSize size = size_of_program(program);
  for (const Program& candidate : simpler(program)) {
    const ProgramSize smaller = size_of_program(candidate);
    for (const int number : smaller) RC_ASSERT(number >= 0);
    RC_ASSERT(smaller < size);
    assert_sound(candidate);
  }
}

// Towards a feature that some program keeps: what is left has it, nothing simpler has, and it passes.
RC_GTEST_PROP(Programs, ShrunkAreSoundAndMinimalAndPass, ()) {
  const Program program = evolved(rc::gen::noShrink(generated()));
  const ActionKind kept = program.actions[any_seed() % program.actions.size()].kind;
  const auto has_it = [&](const Program& p) {
    for (const Action& action : p.actions)
      if (action.kind == kept) return true;
    return false;
  };
  const Shrunk shrunk = shrink(program, has_it);
  RC_ASSERT(shrunk.ended);
  RC_ASSERT(has_it(shrunk.program));
  for (const Program& candidate : simpler(shrunk.program)) RC_ASSERT(!has_it(candidate));
  assert_sound(shrunk.program);
  const Outcome outcome = run_program(shrunk.program, {});
  RC_LOG() << print_program(shrunk.program) << outcome.text;
  RC_ASSERT(outcome.verdict != Verdict::fail);
}

}  // namespace
}  // namespace gatherfuzz
