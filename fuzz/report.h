// What the commands say of a program's outcome: a line, an explanation, a JSON object.
#pragma once

#include <string>

#include "properties/run.h"

namespace gatherfuzz {

// One program on one runtime, judged.
struct Judgement {
  std::string file;
  RuntimeKind runtime = RuntimeKind::symbolic;
  Outcome outcome;
  std::string expected;  // "pass", "fail: race", empty if the program says nothing
  bool as_expected = true;
  int line = 0;  // of a bad file
};

// "pass      symbolic  corpus/seeds/x.program  (12 steps, 1840 ops, 0.4 ms)"
std::string outcome_line(const Judgement& judgement);
// Indented lines for a failure and for what was not expected; otherwise empty. Errors of files are for
// whoever read the file to tell.
std::string explanation(const Judgement& judgement);
// One line, as ci/check.schema.json describes it.
std::string outcome_json(const Judgement& judgement);

// "fail: race", as an expectation would say it.
std::string verdict_text(const Outcome& outcome);

// "7c1e09ab".
std::string signature_text(const Outcome& outcome);

}  // namespace gatherfuzz
