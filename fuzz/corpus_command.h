// `gatherfuzz corpus`: keeps folders of program files canonical, distinct and useful.
#pragma once

#include <string>
#include <vector>

#include "properties/program.h"

namespace gatherfuzz {

// Whether every file below the folder is canonical, distinct, named by the rules (corpus_rules.h), and has an
// expectation where its folder demands one. Prints what is wrong and how to repair it. Returns 1 if anything
// is, 2 if a file is no program. Throws UsageError, Interrupted.
int corpus_check(const std::string& folder);

struct CorpusAddOptions {
  std::string input;  // a file, or "-"
  std::string name;   // default: CLASS-SIGNATURE
  std::string folder = "corpus/regressions";
};

// Stores a program with the expectation that holds on every runtime, and a comment on where it comes from.
// One with a fault is stored as NAME.fault.program, with its healthy half NAME.program beside it. Returns 1,
// and writes nothing, if no expectation holds or the folder has the program already. Throws UsageError,
// InternalError, Interrupted.
int corpus_add(const CorpusAddOptions& options);

// Removes programs until each that is left is needed for a host state that some program of the folder reaches
// (properties/states.h). Those with a fault or an expectation stay, and so does what fails. Returns 1 if
// something fails that does not say so, 2 if a file is no program. Throws UsageError, InternalError,
// Interrupted.
int corpus_minimize(const std::string& folder);

// Adds to a folder what reaches a host state that nothing in it reaches, small programs first, under their
// hashes and without comments and expectation. Those with a fault or a failure are left out. Returns as
// corpus_minimize does. Throws UsageError, InternalError, Interrupted.
int corpus_merge(const std::string& into, const std::vector<std::string>& from);

}  // namespace gatherfuzz
