// A program, judged on the runtime `symbolic`.
#include "fuzz/targets/program_input.h"
#include "fuzz/targets/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace gatherfuzz;
  if (const std::optional<Program> program = program_input(data, size))
    judge_input(*program, RuntimeKind::symbolic);
  return 0;
}
