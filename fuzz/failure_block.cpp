#include "fuzz/failure_block.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "fuzz/report.h"
#include "fuzz/version.h"

namespace gatherfuzz {

namespace {

constexpr std::size_t kProgramLines = 40;  // the rest of the block takes fewer than twenty

std::string sentence(const std::string& text) {
  return text.empty() || text.ends_with('.') ? text : text + ".";
}

std::ptrdiff_t lines_of(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

void write_story(std::ostringstream& text, const Story& story) {
  if (!story.last_writers.empty()) text << "Last writers, latest first\n";
  std::size_t width = 0;
  for (const Writer& w : story.last_writers) width = std::max(width, w.op.size());
  for (const Writer& w : story.last_writers) {
    text << "  " << std::left << std::setw(3) << w.iteration << " rank " << w.rank << "  " << std::setw(7)
         << w.stream << "  " << std::setw(static_cast<int>(width)) << w.op << "  " << w.what;
    if (w.graph != 0) text << "  graph " << w.graph;
    text << "\n";
  }
  if (!story.missing.empty()) text << "  missing: " << story.missing << "\n";
}

}  // namespace

std::string failure_text(const Failure& failure) {
  const Outcome& o = failure.outcome;
  std::ostringstream text;
  text << "FAILURE " << name_of(*o.failure) << "  " << name_of(failure.runtime) << "  signature "
       << signature_text(o);
  if (failure.tried > 0) text << "  reproduced " << failure.reproduced << " of " << failure.tried;
  text << "\n";
  if (o.iteration > 0) text << "Iteration " << o.iteration << ", rank " << o.rank << ": ";
  text << sentence(o.text) << "\n";
  if (!o.expected.empty()) text << "  expected  " << o.expected << "\n  found     " << o.found << "\n";
  write_story(text, o.story);
  if (!o.also.empty()) {
    text << "Also";
    for (const FailureClass other : o.also) text << " " << name_of(other);
    text << "\n";
  }
  if (!failure.passes_with.empty()) {
    text << "The same program passes with: ";
    for (std::size_t i = 0; i < failure.passes_with.size(); ++i)
      text << (i > 0 ? "; " : "") << failure.passes_with[i];
    text << "\n";
  }
  const std::string program = print_program(failure.program);
  const auto lines = static_cast<std::size_t>(lines_of(program));
  const auto before = static_cast<std::size_t>(lines_of(print_program(failure.original)));
  text << "Program (" << lines;
  before > lines ? text << " of " << before << " lines left)\n" : text << " lines)\n";
  std::istringstream in(program);
  std::string line;
  for (std::size_t i = 0; i < std::min(lines, kProgramLines) && std::getline(in, line); ++i)
    text << "  " << line << "\n";
  if (lines > kProgramLines) text << "  ... " << lines - kProgramLines << " more lines in the file\n";
  text << "Found by " << failure.found_by << ". " << version_text() << "\n";
  if (failure.settings.empty()) text << "Keep:      gatherfuzz corpus add " << failure.file << "\n";
  text << "Reproduce: gatherfuzz check --runtime " << name_of(failure.runtime) << failure.settings << " "
       << failure.file;
  return text.str();
}

}  // namespace gatherfuzz
