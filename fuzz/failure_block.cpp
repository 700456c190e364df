#include "fuzz/failure_block.h"

#include <algorithm>
#include <sstream>

#include "fuzz/report.h"
#include "fuzz/version.h"

namespace gatherfuzz {

namespace {

constexpr std::size_t kProgramLines = 50;  // the rest of the block takes fewer than ten

std::string file_name(const Outcome& outcome) {
  return std::string(name_of(*outcome.failure)) + "-" + signature_text(outcome) + ".program";
}

std::ptrdiff_t lines_of(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

}  // namespace

std::string failure_path(const std::string& out, const Outcome& outcome) {
  return out + "/failures/" + file_name(outcome);
}

std::string unshrunk_path(const std::string& out, const Outcome& outcome) {
  return out + "/failures/unshrunk/" + file_name(outcome);
}

std::string failure_text(const Failure& failure) {
  const Outcome& o = failure.outcome;
  std::ostringstream text;
  text << "FAILURE " << name_of(*o.failure) << "  " << name_of(failure.runtime) << "  signature "
       << signature_text(o) << "  reproduced " << failure.reproduced << " of " << failure.tried << "\n"
       << "Iteration " << o.iteration << ", rank " << o.rank << ": " << o.text << "\n";
  if (!o.also.empty()) {
    text << "Also";
    for (const FailureClass other : o.also) text << " " << name_of(other);
    text << "\n";
  }
  const std::string program = print_program(failure.program);
  const auto lines = static_cast<std::size_t>(lines_of(program));
  text << "Program (" << lines << " of " << lines_of(print_program(failure.original)) << " lines left)\n";
  std::istringstream in(program);
  std::string line;
  for (std::size_t i = 0; i < std::min(lines, kProgramLines) && std::getline(in, line); ++i)
    text << "  " << line << "\n";
  if (lines > kProgramLines) text << "  ... " << lines - kProgramLines << " more lines in the file\n";
  text << "Found by " << failure.found_by << ". " << version_text() << "\n"
       << "Reproduce: gatherfuzz check --runtime " << name_of(failure.runtime) << " " << failure.file;
  return text.str();
}

}  // namespace gatherfuzz
