#include "fuzz/program_file.h"

#include "fuzz/exit_code.h"
#include "fuzz/files.h"

namespace gatherfuzz {

ProgramFile read_program_file(const std::string& path) {
  std::string problem;
  std::optional<std::string> text = read_file(path, kMaxProgramBytes, problem);
  if (!text) throw UsageError(path + ": " + problem);
  ParseResult parsed = parse_program(*text);
  if (!parsed.ok())
    throw UsageError(path + ":" + std::to_string(parsed.errors.front().line) + ": " +
                     parsed.errors.front().message);
  return {path, std::move(*text), std::move(*parsed.program)};
}

ProgramFolder read_program_folder(const std::string& folder) {
  ProgramFolder result;
  std::string problem;
  for (const std::string& path : programs_below(folder, problem)) {
    try {
      result.files.push_back(read_program_file(path));
    } catch (const UsageError& error) {
      result.unreadable.push_back(error.what());
    }
  }
  if (!problem.empty()) throw UsageError(folder + ": " + problem);
  return result;
}

}  // namespace gatherfuzz
