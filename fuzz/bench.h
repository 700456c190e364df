// `gatherfuzz bench`: how fast programs run, on one core and without a worker process.
#pragma once

#include <string>

namespace gatherfuzz {

struct BenchOptions {
  std::string corpus = "corpus/bench";
  double seconds = 5.0;  // for each runtime; all programs run at least once
  bool json = false;
};

// Returns the exit code. Throws UsageError, InternalError, Interrupted.
int bench(const BenchOptions& options);

}  // namespace gatherfuzz
