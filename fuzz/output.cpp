#include "fuzz/output.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <cstdio>

#include "fuzz/exit_code.h"

namespace gatherfuzz {

bool write_all(int file_descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(file_descriptor, bytes.data(), bytes.size());
    if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
    if (n < 0 && errno != EINTR) return false;
  }
  return true;
}

void print_result(std::string_view line) {
  if (!write_all(STDOUT_FILENO, std::string(line) + "\n"))
    throw InternalError(std::string("cannot write results to standard output: ") + strerror(errno));
}

void print_note(std::string_view line) {
  write_all(STDERR_FILENO, std::string(line) + "\n");
}

ProgressLine::ProgressLine() : on_terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  end();
}

void ProgressLine::show(const std::string& line) {
  if (!on_terminal_) return print_note(line);
  std::string text = "\r" + line;
  if (line.size() < shown_) text += std::string(shown_ - line.size(), ' ');
  shown_ = line.size();
  write_all(STDERR_FILENO, text);
}

void ProgressLine::end() {
  if (shown_ > 0) write_all(STDERR_FILENO, "\n");
  shown_ = 0;
}

std::string with_commas(uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ',');
  return text;
}

std::string short_text(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.3g", value);
  return buffer;
}

std::string fixed_text(double value, int digits) {
  char buffer[400];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

}  // namespace gatherfuzz
