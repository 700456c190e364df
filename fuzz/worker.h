// A process of its own in which programs run, so that a crash of what is tested is an outcome and not the
// tool's end.
//
// One worker runs many programs, one after the other. After its death the next program gets a new one. It
// ends with its owner, however that ends.
#pragma once

#include <chrono>
#include <string_view>

#include "fuzz/child_process.h"
#include "properties/run.h"

namespace gatherfuzz {

class Worker {
 public:
  // A program may take so much processor time; 0: any.
  explicit Worker(int most_seconds = 0) : most_seconds_(most_seconds) {}

  // What run_program says there, with default options, or with the story of a failure; class `crash` if the
  // process died or an exception got out, `timeout` if it took too long. Throws Interrupted on Ctrl-C (the
  // process is gone then) and InternalError if no process can be started.
  Outcome run(const Program& program, RuntimeKind runtime, bool story = false);

  // run() in two halves, for those who wait for several workers: after begin(), socket() is readable once
  // finish() has something to say. Ctrl-C is theirs to notice meanwhile.
  void begin(std::string_view program, RuntimeKind runtime, bool story = false);  // printed
  Outcome finish();
  int socket() const { return process_.socket(); }

 private:
  int most_seconds_;
  ChildProcess process_;
  std::chrono::steady_clock::time_point begun_;
};

}  // namespace gatherfuzz
