// `gatherfuzz shrink`: the smallest program that fails alike, and what campaigns share with it.
#pragma once

#include <string>

#include "fuzz/worker.h"
#include "properties/shrink.h"

namespace gatherfuzz {

struct ShrinkOptions {
  std::string input;  // a file, or "-"
  std::string out;    // default: the file with .shrunk.program at its end; standard output for "-"
  RuntimeKind runtime = RuntimeKind::symbolic;
};

// Returns the exit code: 1 if the program does not fail. Throws UsageError, InternalError, Interrupted.
int shrink_file(const ShrinkOptions& options);

// The program with the twin named that the failure was seen beside: a smaller program's hash would choose
// another one.
Program with_its_twin(Program program, const Outcome& outcome);

// Runs candidates in the worker; one counts if class and signature are those of `outcome`.
Shrunk shrink_failure(Worker& worker, const Program& program, RuntimeKind runtime, const Outcome& outcome,
                      ShrinkLimit limit = {});

}  // namespace gatherfuzz
