// Ctrl-C: noticed between pieces of work, and while waiting for a worker process, which it kills.
#pragma once

#include <sys/types.h>

namespace gatherfuzz {

// From now on SIGINT sets a flag instead of ending the process. System calls that wait return EINTR.
void catch_interrupts();
bool interrupted();
// Throws Interrupted if SIGINT came.
void stop_if_interrupted();

// While one of these lives, SIGINT kills the process, so that a wait for its answer ends.
class KilledOnInterrupt {
 public:
  explicit KilledOnInterrupt(pid_t process);
  ~KilledOnInterrupt();
  KilledOnInterrupt(const KilledOnInterrupt&) = delete;
  KilledOnInterrupt& operator=(const KilledOnInterrupt&) = delete;
};

// While one of these lives, SIGINT waits.
class InterruptsHeld {
 public:
  InterruptsHeld();
  ~InterruptsHeld();
  InterruptsHeld(const InterruptsHeld&) = delete;
  InterruptsHeld& operator=(const InterruptsHeld&) = delete;
};

}  // namespace gatherfuzz
