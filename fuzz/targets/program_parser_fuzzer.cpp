// Any bytes, read as a program. What parses must print as text that parses as the same program, and that
// prints as itself; what does not must say in which lines.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "fuzz/targets/target.h"
#include "properties/program.h"

namespace {

[[noreturn, gnu::noinline]] void parser_disagrees(const char* what, const std::string& text) {
  std::fprintf(stderr, "gatherfuzz: %s:\n%s\n", what, text.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace gatherfuzz;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const ParseResult parsed = parse_program(text);
  if (parsed.ok() != parsed.errors.empty()) parser_disagrees("errors beside a program, or neither", "");
  for (const ParseError& error : parsed.errors)
    if (error.line < 1 || error.message.empty())
      parser_disagrees("an error without line or text", error.message);
  if (!parsed.ok()) return 0;
  const std::string printed = print_program(*parsed.program);
  const ParseResult again = parse_program(printed);
  if (!again.ok()) parser_disagrees(again.errors.front().message.c_str(), printed);
  if (*again.program != *parsed.program) parser_disagrees("the printed program is another one", printed);
  if (print_program(*again.program) != printed) parser_disagrees("printed again, the text differs", printed);
  if (program_hash(*again.program) != program_hash(*parsed.program))
    parser_disagrees("the printed program has another hash", printed);
  return 0;
}
