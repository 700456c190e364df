// Parts of the fuzzer that can be left out, to measure what they are worth: words of the environment variable
// GATHERFUZZ_WITHOUT, separated by commas.
#pragma once

#include <string>

namespace gatherfuzz {

struct Ablation {
  bool mutator = false;  // libFuzzer mutates bytes, not programs
  bool states = false;   // host states do not make a program worth keeping
};

// What the environment says now. Throws UsageError for an unknown word.
Ablation ablation();
// "mutator,states"; empty if nothing is left out.
std::string text_of(const Ablation& ablation);

}  // namespace gatherfuzz
