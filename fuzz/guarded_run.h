// A program's run from which nothing gets out: an exception is an outcome, and so is the process's death.
#pragma once

#include <string>

#include "properties/run.h"

namespace gatherfuzz {

// Of processor time, in a campaign: some thousand times what the largest of its programs takes.
inline constexpr int kMostProgramSeconds = 60;

// run_program; class `crash` if an exception gets out of it. One that takes more processor time than
// `most_seconds` (0: no limit) ends the process.
Outcome guarded_run(const Program& program, const RunOptions& options, int most_seconds);

// Class `crash`, with what happened. The signature is that of the text without its digits.
Outcome crashed(std::string text);
// The outcome of a program whose process ended, with what waitpid says of that: class `timeout` if it took
// too long, otherwise `crash`.
Outcome outcome_of_death(int wait_status);

}  // namespace gatherfuzz
