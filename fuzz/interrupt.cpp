#include "fuzz/interrupt.h"

#include <signal.h>

#include <atomic>

#include "fuzz/exit_code.h"

namespace gatherfuzz {

namespace {

std::atomic<bool> came{false};
std::atomic<pid_t> victim{0};
static_assert(std::atomic<pid_t>::is_always_lock_free);

void on_interrupt(int) {
  came = true;
  if (const pid_t process = victim; process > 0) kill(process, SIGKILL);
}

sigset_t only_interrupt() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() {
  return came;
}

void stop_if_interrupted() {
  if (came) throw Interrupted{};
}

KilledOnInterrupt::KilledOnInterrupt(pid_t process) {
  victim = process;
}

KilledOnInterrupt::~KilledOnInterrupt() {
  victim = 0;
}

InterruptsHeld::InterruptsHeld() {
  const sigset_t set = only_interrupt();
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

InterruptsHeld::~InterruptsHeld() {
  const sigset_t set = only_interrupt();
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace gatherfuzz
