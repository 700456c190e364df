// Ctrl-C: noticed between pieces of work, and while waiting for a worker process, which it kills.
#pragma once

#include <sys/types.h>

namespace gatherfuzz {

// From now on SIGINT sets a flag instead of ending the process. System calls that wait return EINTR.
void catch_interrupts();
bool interrupted();
// Throws Interrupted if SIGINT came.
void stop_if_interrupted();

// The process that SIGINT kills, so that a wait for its answer ends; 0: none.
void kill_on_interrupt(pid_t process);

// While one of these lives, SIGINT waits.
class InterruptsHeld {
 public:
  InterruptsHeld();
  ~InterruptsHeld();
  InterruptsHeld(const InterruptsHeld&) = delete;
  InterruptsHeld& operator=(const InterruptsHeld&) = delete;
};

}  // namespace gatherfuzz
