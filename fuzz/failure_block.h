// The failure block: everything that a reader of a log needs of one failure.
#pragma once

#include <string>

#include "properties/run.h"

namespace gatherfuzz {

struct Failure {
  Program program;   // as small as it got
  Program original;  // as it was found
  RuntimeKind runtime = RuntimeKind::symbolic;
  Outcome outcome;
  std::string file;  // where the program is stored
  int reproduced = 0;
  int tried = 0;  // to reproduce it
  std::string found_by;
};

// OUT/failures/CLASS-SIGNATURE.program
std::string failure_path(const std::string& out, const Outcome& outcome);

// OUT/failures/unshrunk/CLASS-SIGNATURE.program
std::string unshrunk_path(const std::string& out, const Outcome& outcome);

// At most 60 lines; a longer program is cut short.
std::string failure_text(const Failure& failure);

}  // namespace gatherfuzz
