// Several workers that keep several cores busy, and give their outcomes back in order.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "fuzz/guarded_run.h"
#include "fuzz/running_file.h"
#include "fuzz/worker.h"

namespace gatherfuzz {

// One program on some runtimes, one after the other until it does not pass.
struct Task {
  uint64_t number = 0;
  Program program;
  std::size_t built_on = 0;  // how many programs were kept when it was drawn
  std::vector<RuntimeKind> runtimes;
  std::vector<Outcome> outcomes;  // of the first runtimes

  bool done() const {
    return !outcomes.empty() &&
           (outcomes.size() == runtimes.size() || outcomes.back().verdict != Verdict::pass);
  }
};

class WorkerPool {
 public:
  // What worker N works on is always in RUNNING/N.program, N from 1.
  WorkerPool(std::size_t workers, const std::string& running);

  // A free worker begins with it at once, unless it is done already.
  void add(Task task);
  // The task that was added first, done. There must be one. Throws Interrupted, and what Worker throws.
  Task next();
  bool front_is_done() const { return !tasks_.empty() && tasks_.front().done(); }
  std::size_t size() const { return tasks_.size(); }
  // Waits a short while for the workers, and for these sockets of others, which it gives back as poll does.
  void wait(std::vector<pollfd>& others);

 private:
  struct Seat {
    explicit Seat(const std::string& path) : running(path) {}
    Worker worker{kMostProgramSeconds};
    RunningFile running;
    Task* task = nullptr;  // that it works on
  };

  void begin(Seat& seat);
  void give_out();

  std::deque<Task> tasks_;     // what points at one stays valid while others come and go at the ends
  std::size_t given_out_ = 0;  // of tasks_, the first ones
  std::deque<Seat> seats_;     // which never moves one
};

}  // namespace gatherfuzz
