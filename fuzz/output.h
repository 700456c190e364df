// What commands print: results to standard output, where every write is checked; people's text and progress
// to standard error, where none is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gatherfuzz {

// All of the bytes, or false with errno set.
bool write_all(int file_descriptor, std::string_view bytes);

// A line of results. Throws InternalError if it cannot be written, as on a full disk.
void print_result(std::string_view line);
// A line for people.
void print_note(std::string_view line);

// A line that is replaced in place on a terminal, and otherwise printed when told to.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  bool on_terminal() const { return on_terminal_; }
  void show(const std::string& line);
  // Leaves what was shown where it is; the next output begins on a new line.
  void end();

 private:
  bool on_terminal_;
  std::size_t shown_ = 0;  // characters on the terminal's line
};

// "52,311".
std::string with_commas(uint64_t number);
// Three significant digits.
std::string short_text(double value);
// printf for one number: fixed_text(0.42, 1) is "0.4".
std::string fixed_text(double value, int digits);

}  // namespace gatherfuzz
