// The other end of `gatherfuzz fuzz --engine libfuzzer`.
#pragma once

#include "properties/run.h"

namespace gatherfuzz {

// Runs the program and counts its states; the campaign at the other end of the socket is told which program
// runs, and what it came to. Ends the process if nobody is there.
void report_input(int socket, const Program& program, RuntimeKind runtime);

}  // namespace gatherfuzz
