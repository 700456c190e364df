#include "fuzz/targets/report_input.h"

#include <cstdlib>

#include "fuzz/child_process.h"
#include "fuzz/engine_messages.h"
#include "fuzz/exit_code.h"
#include "fuzz/guarded_run.h"
#include "fuzz/outcome_message.h"
#include "fuzz/output.h"
#include "fuzz/targets/state_counters.h"
#include "fuzz/version.h"

namespace gatherfuzz {

namespace {

void report(int socket, char kind, const std::string& content) {
  if (send_message(socket, kind + content)) return;
  print_note("cannot report to the campaign that started this fuzz target");
  std::_Exit(kExitInternal);
}

}  // namespace

void report_input(int socket, const Program& program, RuntimeKind runtime) {
  static const bool said_version = (report(socket, kVersionMessage, version_text()), true);
  static_cast<void>(said_version);
  report(socket, kProgramMessage, print_program(program));
  RunOptions options;
  options.runtime = runtime;
  const Outcome outcome = guarded_run(program, options, kMostProgramSeconds);
  if (outcome.verdict != Verdict::fail) count_states(outcome.states);  // the rest is like a bare target's
  report(socket, kOutcomeMessage, to_message(outcome));
}

}  // namespace gatherfuzz
