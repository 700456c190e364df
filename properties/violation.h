// What an oracle found: class, place, and words for people.
#pragma once

#include <string>
#include <vector>

#include "impl/runtime/operand.h"
#include "properties/verdict.h"

namespace gatherfuzz {

struct Violation {
  FailureClass failure = FailureClass::crash;
  int rank = 0;
  int iteration = 0;            // from 1
  std::string op;               // that was about to run, or had run
  std::string what;             // parameter, bucket or scalar
  std::string text;             // one sentence: what was expected, what was found
  Operand operand;              // the bytes that were looked at; empty if there are none
  std::string expected, found;  // what they must hold, and do; empty where the sentence says all
};

// The violations found at one point: the first in the classes' order decides, the others stand beside it.
struct Verdicts {
  std::vector<Violation> found;

  bool any() const { return !found.empty(); }
  const Violation& first() const;
};

}  // namespace gatherfuzz
