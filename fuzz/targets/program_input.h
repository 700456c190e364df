// What the targets do with an input that is a program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "properties/run.h"

namespace gatherfuzz {

// The program of these bytes without its `expect`, with the flags and the fault of the environment
// (environment.h). Nothing for bytes that are no program, for a program with a `fault` of its own, for one
// that cannot have the flags, and for one so large that a run would be taken for a hang.
std::optional<Program> program_input(const uint8_t* data, std::size_t size);

// Runs the program and counts its states. A failure is told as `gatherfuzz fuzz` tells it, and aborts; a
// campaign that started the target is told of every program instead.
void judge_input(const Program& program, RuntimeKind runtime);

}  // namespace gatherfuzz
