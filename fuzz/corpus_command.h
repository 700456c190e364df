// `gatherfuzz corpus`: keeps folders of programs canonical, distinct and useful.
#pragma once

#include <string>
#include <vector>

#include "properties/run.h"

namespace gatherfuzz {

struct CorpusOptions {
  std::string folder = "corpus/regressions";  // check, minimize: the one looked at; add, merge: where to
  std::string file;                           // add
  std::string name;                           // add; default: class and signature of its failure
  std::vector<std::string> from;              // merge
};

// All return the exit code and throw UsageError, InternalError, Interrupted.

// Every file is printed canonically and holds what no other does, save for the healthy ones of pairs; below a
// folder `regressions` each says what it expects. Exit 1 and one line a problem otherwise.
int corpus_check(const CorpusOptions& options);
// Judges the program, writes it with what it was found to come to and where it is from. Refuses what is
// there.
int corpus_add(const CorpusOptions& options);
// Removes programs whose states (states.h) others reach, the longest first.
int corpus_minimize(const CorpusOptions& options);
// Copies programs that reach a state which none of the folder's does.
int corpus_merge(const CorpusOptions& options);

}  // namespace gatherfuzz
