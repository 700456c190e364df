// A fuzz target: one file that defines LLVMFuzzerTestOneInput, and a line in ci/fuzz_targets.cmake. Engines
// (libFuzzer and those with its interface) call it; replay_main.cpp calls it for files, in every build.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size);

// Of targets whose input is a program (program_mutator.cpp). Both write a program's text of at most
// `max_size` bytes and return its size; 0 if the text does not fit, and the engine tries again.
extern "C" std::size_t LLVMFuzzerCustomMutator(uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned int seed);
extern "C" std::size_t LLVMFuzzerCustomCrossOver(const uint8_t* first, std::size_t first_size,
                                                 const uint8_t* second, std::size_t second_size, uint8_t* out,
                                                 std::size_t max_size, unsigned int seed);
