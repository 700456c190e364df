// The mutator of targets whose input is a program: it edits the parsed program, and always writes a valid
// one. With GATHERFUZZ_WITHOUT=mutator in the environment the engine's own mutations take its place.
#include <cstring>

#include "fuzz/targets/environment.h"
#include "fuzz/targets/target.h"
#include "properties/generator.h"
#include "properties/mutate.h"

namespace gatherfuzz {

namespace {

// As the built-in engine draws half of its programs. From one program, by changes alone, an engine comes late
// to other flags: of its first 1,500 programs the states are less than half as many.
constexpr int kDrawnPercent = 50;

// Bytes that are no program give way to a generated one; mutate and splice repair one that is refused.
Program program_of(const uint8_t* data, std::size_t size, Choices& choices) {
  ParseResult parsed = parse_program({reinterpret_cast<const char*>(data), size});
  if (!parsed.ok()) return generate_program(choices);
  return std::move(*parsed.program);
}

std::size_t emit(const Program& program, uint8_t* out, std::size_t max_size) {
  const std::string text = print_program(program);
  if (text.size() > max_size) return 0;
  std::memcpy(out, text.data(), text.size());
  return text.size();
}

}  // namespace

}  // namespace gatherfuzz

// libFuzzer's own. Without an engine nobody mutates, other than tests.
extern "C" [[gnu::weak]] std::size_t LLVMFuzzerMutate(uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" std::size_t LLVMFuzzerCustomMutator(uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned int seed) {
  using namespace gatherfuzz;
  if (left_out().mutator && LLVMFuzzerMutate != nullptr) return LLVMFuzzerMutate(data, size, max_size);
  RandomChoices choices(seed);
  if (flip(choices, kDrawnPercent, "draw")) return emit(generate_program(choices), data, max_size);
  return emit(mutate(program_of(data, size, choices), choices), data, max_size);
}

extern "C" std::size_t LLVMFuzzerCustomCrossOver(const uint8_t* first, std::size_t first_size,
                                                 const uint8_t* second, std::size_t second_size, uint8_t* out,
                                                 std::size_t max_size, unsigned int seed) {
  using namespace gatherfuzz;
  if (left_out().mutator) return 0;
  RandomChoices choices(seed);
  const Program one = program_of(first, first_size, choices);
  return emit(splice(one, program_of(second, second_size, choices), choices), out, max_size);
}
