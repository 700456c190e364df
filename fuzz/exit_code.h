// How commands end: exit codes, and the exceptions that main turns into them.
#pragma once

#include <stdexcept>

namespace gatherfuzz {

inline constexpr int kExitAsExpected = 0;
inline constexpr int kExitUnexpected = 1;  // an outcome contradicts its expectation, or a failure was found
inline constexpr int kExitUsage = 2;       // a bad command line or a bad file
inline constexpr int kExitAllSkipped = 3;  // no file was bad and every program was skipped
inline constexpr int kExitInternal = 4;    // the tool itself could not do its work
inline constexpr int kExitInterrupted = 130;

// The command cannot start with what it was given: exit 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The tool could not do its work, for instance write its results: exit 4.
struct InternalError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Ctrl-C: exit 130.
struct Interrupted {};

}  // namespace gatherfuzz
