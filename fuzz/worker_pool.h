// Several workers that keep several cores busy, and give their outcomes back in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "fuzz/running_file.h"
#include "fuzz/worker.h"

namespace gatherfuzz {

// One program on some runtimes, one after the other until it does not pass.
struct Task {
  uint64_t number = 0;
  Program program;
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

  // A free worker begins with it at once.
  void add(Task task);
  // The task that was added first, done. There must be one. Throws Interrupted, and what Worker throws.
  Task next();
  std::size_t size() const { return tasks_.size(); }

 private:
  struct Seat {
    explicit Seat(const std::string& path) : running(path) {}
    Worker worker;
    RunningFile running;
    Task* task = nullptr;  // that it works on
  };

  void begin(Seat& seat);
  void give_out();
  void wait();

  std::deque<Task> tasks_;     // what points at one stays valid while others come and go at the ends
  std::size_t given_out_ = 0;  // of tasks_, the first ones
  std::deque<Seat> seats_;     // which never moves one
};

}  // namespace gatherfuzz
