// How a fuzz target that runs in an engine talks with the campaign that started it: variables of its
// environment, and messages, of which the first byte says the kind. The first one is the version; then, for
// each program, the program before it runs and its outcome after.
#pragma once

namespace gatherfuzz {

inline constexpr char kFaultVariable[] = "GATHERFUZZ_FAULT";    // as --fault
inline constexpr char kSetVariable[] = "GATHERFUZZ_SET";        // as each --set, with a space between two
inline constexpr char kReportVariable[] = "GATHERFUZZ_REPORT";  // the number of the socket for the messages

inline constexpr char kVersionMessage = 'v';  // version_text()
inline constexpr char kProgramMessage = 'p';  // print_program()
inline constexpr char kOutcomeMessage = 'o';  // to_message()

}  // namespace gatherfuzz
