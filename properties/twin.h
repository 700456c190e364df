// Twins: a second program, derived from the first by a change that must not change a number. Both run, and
// every step must come to the same loss, norm, clip coefficient and main params. Faults stay with the first:
// the twin runs on a healthy machine.
#pragma once

#include <optional>
#include <string>

#include "properties/plan.h"
#include "properties/program.h"
#include "properties/verdict.h"

namespace gatherfuzz {

struct Twin {
  TwinKind kind = TwinKind::none;
  FailureClass failure = FailureClass::graph_differs;  // if they differ
  Program program;
  Plan plan;
};

// "the twin eager (nothing is captured or replayed)".
std::string twin_text(const Twin& twin);

// The twin of this kind; nothing where the change would change nothing, or would be refused. `numbers`:
// memory holds numbers and not terms.
std::optional<Twin> make_twin(const Program& program, const Plan& plan, TwinKind kind, bool numbers);

// The twin that the program's `twin` line names, or else its hash: first among the classes that have one,
// then within the class. Nothing if none applies.
std::optional<Twin> choose_twin(const Program& program, const Plan& plan, bool numbers);

}  // namespace gatherfuzz
