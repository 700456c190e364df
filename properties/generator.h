// Legal programs out of choices.
//
// Swarm: each program first draws which groups of flags leave their defaults and which actions are likely, so
// that programs differ in kind and not only in detail. No pair of actions is hard-wired. Flags are drawn,
// then repaired until validate() accepts them; refusal_before_run() lets every generated program pass. Its
// only refusal at run time is the rare deliberate one: an injection that check_for_nan_in_grad meets. Shapes
// are small, since a run on the host costs what its products cost.
#pragma once

#include <vector>

#include "properties/choices.h"
#include "properties/program.h"

namespace gatherfuzz {

// Training steps that a generated or mutated program asks for at most, so that it stays fast; one or two more
// where injections would leave no step that is taken.
inline constexpr int kMostGeneratedSteps = 22;

// Flags, now and then delays, about ten actions and about twelve training steps (1 to 24), at least one of
// which is taken.
Program generate_program(Choices& choices);

// One `delay` line.
Delay generate_delay(Choices& choices);
// Flags that validate() accepts.
Flags generate_flags(Choices& choices);
// Actions for these flags; well-paired loops, at least one `train` or `warmup`.
std::vector<Action> generate_actions(Choices& choices, const Flags& flags);

// Restores grad buffers that are offloaded at the end, and trains until a step is taken: a program in which
// every step is skipped proves nothing.
void make_it_train(Program& program);

// Changes what breaks a rule until validate() accepts the flags; accepted flags stay as they are.
void repair_flags(Flags& flags);

}  // namespace gatherfuzz
