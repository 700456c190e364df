// Programs out of programs: what a fuzzer does with what it has found.
#pragma once

#include "properties/choices.h"
#include "properties/program.h"

namespace gatherfuzz {

// A few edits: actions inserted, removed, repeated, swapped, moved or given other arguments; one flag or a
// few neighbours as a generated program would have them; another schedule or delay. The result is legal
// (refusal_before_run lets it pass), as long as generated programs at most, and without faults, expectation,
// twin and comments.
Program mutate(const Program& program, Choices& choices);

// The beginning of one program's actions and the end of another's, with the flags of one of them.
Program splice(const Program& first, const Program& second, Choices& choices);

}  // namespace gatherfuzz
