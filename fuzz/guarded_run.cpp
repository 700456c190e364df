#include "fuzz/guarded_run.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <exception>

#include "impl/runtime/symbolic/term.h"

namespace gatherfuzz {

namespace {

// The timer counts the process's time, user and system; its signal ends a process that does not catch it.
void limit_processor_time(int seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = seconds;
  setitimer(ITIMER_PROF, &timer, nullptr);
}

Outcome failed(FailureClass failure, std::string text) {
  Outcome outcome;
  outcome.verdict = Verdict::fail;
  outcome.failure = failure;
  outcome.text = std::move(text);
  uint64_t hash = term_of(std::string(name_of(failure)).c_str());
  for (const char c : outcome.text)
    if (c < '0' || c > '9') hash = mix(hash, static_cast<unsigned char>(c));
  outcome.signature = hash >> 32;
  return outcome;
}

}  // namespace

Outcome crashed(std::string text) {
  return failed(FailureClass::crash, std::move(text));
}

Outcome guarded_run(const Program& program, const RunOptions& options, int most_seconds) {
  limit_processor_time(most_seconds);
  Outcome outcome;
  try {
    outcome = run_program(program, options);
  } catch (const std::exception& error) {
    outcome = crashed(std::string("an exception got out of the program: ") + error.what());
  }
  limit_processor_time(0);
  return outcome;
}

Outcome outcome_of_death(int wait_status) {
  if (!WIFSIGNALED(wait_status))
    return crashed("the worker process exited with status " + std::to_string(WEXITSTATUS(wait_status)));
  const int number = WTERMSIG(wait_status);
  if (number == SIGPROF) return failed(FailureClass::timeout, "the program took too much processor time");
  return crashed("the worker process died of signal " + std::to_string(number) + " (" + strsignal(number) +
                 ")");
}

}  // namespace gatherfuzz
