#include "fuzz/shrink_command.h"

#include <algorithm>

#include "fuzz/exit_code.h"
#include "fuzz/failure.h"
#include "fuzz/files.h"
#include "fuzz/output.h"
#include "fuzz/program_file.h"
#include "fuzz/report.h"

namespace gatherfuzz {

namespace {

std::string default_out(const std::string& input) {
  const std::string ending = ".program";
  const std::string stem = input.ends_with(ending) ? input.substr(0, input.size() - ending.size()) : input;
  return stem + ".shrunk" + ending;
}

}  // namespace

int shrink_file(const ShrinkOptions& options) {
  const Program program = read_program_file(options.input).program;
  Worker worker;
  const Outcome outcome = worker.run(program, options.runtime);
  if (outcome.verdict != Verdict::fail) {
    print_note("shrink: " + options.input + ": expected a program that fails on " +
               std::string(name_of(options.runtime)) + ", found " + std::string(name_of(outcome.verdict)) +
               (outcome.text.empty() ? "" : ": " + outcome.text));
    return kExitUnexpected;
  }
  const Shrunk shrunk = shrink_failure(worker, program, options.runtime, outcome);
  const std::string text = print_program(shrunk.program);
  const std::string out =
      options.out.empty() && options.input != "-" ? default_out(options.input) : options.out;
  if (out.empty()) {
    print_result(text.substr(0, text.size() - 1));
  } else {
    write_file(out, text);
  }
  const auto lines = [](const Program& p) {
    const std::string printed = print_program(without_comments(p));
    return std::to_string(std::count(printed.begin(), printed.end(), '\n'));
  };
  print_note("shrink: " + std::string(name_of(*outcome.failure)) + ", signature " + signature_text(outcome) +
             ": " + lines(shrunk.program) + " of " + lines(program) + " lines left after " +
             with_commas(shrunk.runs) + " runs" +
             (shrunk.ended ? "" : " (the limit; it may shrink further)") + (out.empty() ? "" : ": " + out));
  return kExitAsExpected;
}

}  // namespace gatherfuzz
