// What the targets do with an input that is a program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "properties/run.h"

namespace gatherfuzz {

// The program of these bytes without its `expect`, and with the fault of the environment variable
// GATHERFUZZ_FAULT (as `gatherfuzz fuzz --fault`) if that is set. Nothing for bytes that are no program, for
// a program with a `fault` of its own, and for one so large that a run would be taken for a hang. Ends the
// process with exit code 2 if the variable is no fault.
std::optional<Program> program_input(const uint8_t* data, std::size_t size);

// Runs the program and counts its states. A failure is told as `gatherfuzz fuzz` tells it, and aborts.
void judge_input(const Program& program, RuntimeKind runtime);

}  // namespace gatherfuzz
