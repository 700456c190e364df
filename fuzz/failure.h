// One failure, from the program that was found to all that its block says: shrunk, run again with its story,
// tried with single flags at their defaults.
#pragma once

#include <string>
#include <vector>

#include "fuzz/worker.h"
#include "properties/shrink.h"

namespace gatherfuzz {

struct Failure {
  Program program;   // as small as it got
  Program original;  // as it was found
  RuntimeKind runtime = RuntimeKind::symbolic;
  Outcome outcome;
  std::string file;      // where the program is stored
  std::string settings;  // " --set NAME=VALUE" of each flag that it has and the file has not
  int reproduced = 0;
  int tried = 0;                         // to reproduce it; 0: it was not run again
  std::vector<std::string> passes_with;  // "overlap_param_gather false": one flag set to its default
  std::string found_by;
};

// The program with the twin named that the failure was seen beside: a smaller program's hash would choose
// another one.
Program with_its_twin(Program program, const Outcome& outcome);

// Runs candidates in the worker; one counts if class and signature are those of `outcome`. A failure that was
// seen beside a twin keeps its line, so that whoever edits the file keeps the failure.
Shrunk shrink_failure(Worker& worker, const Program& program, RuntimeKind runtime, const Outcome& outcome,
                      ShrinkLimit limit = {});

// Everything but `file` and `found_by`: of the program as it is, or shrunk first.
Failure examine(Worker& worker, const Program& program, RuntimeKind runtime, const Outcome& outcome);
Failure investigate(Worker& worker, const Program& program, RuntimeKind runtime, const Outcome& outcome,
                    ShrinkLimit limit = {});

// The failure's program, shrunk or not, with a comment that says how it was found.
std::string stored_text(Program program, const Failure& failure);

// The same class and the same signature.
bool alike(const Outcome& a, const Outcome& b);

}  // namespace gatherfuzz
