// `gatherfuzz shrink`: the smallest program that fails alike.
#pragma once

#include <string>

#include "properties/run.h"

namespace gatherfuzz {

struct ShrinkOptions {
  std::string input;  // a file, or "-"
  std::string out;    // default: the file with .shrunk.program at its end; standard output for "-"
  RuntimeKind runtime = RuntimeKind::symbolic;
};

// Returns the exit code: 1 if the program does not fail. Throws UsageError, InternalError, Interrupted.
int shrink_file(const ShrinkOptions& options);

}  // namespace gatherfuzz
