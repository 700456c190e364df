#include "fuzz/worker_pool.h"

#include <errno.h>
#include <string.h>

#include <algorithm>

#include "fuzz/exit_code.h"
#include "fuzz/interrupt.h"

namespace gatherfuzz {

namespace {

constexpr int kInterruptsSeenEvery = 100;  // milliseconds, for one that came just before the wait

}  // namespace

WorkerPool::WorkerPool(std::size_t workers, const std::string& running) {
  for (std::size_t i = 1; i <= workers; ++i)
    seats_.emplace_back(running + "/" + std::to_string(i) + ".program");
}

void WorkerPool::add(Task task) {
  tasks_.push_back(std::move(task));
  give_out();
}

Task WorkerPool::next() {
  std::vector<pollfd> no_others;
  while (!front_is_done()) wait(no_others);
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  if (given_out_ > 0) --given_out_;  // otherwise it was done when it came
  return task;
}

void WorkerPool::begin(Seat& seat) {
  const std::string text = print_program(seat.task->program);
  seat.running.record(seat.task->number, text);
  seat.worker.begin(text, seat.task->runtimes[seat.task->outcomes.size()]);
}

void WorkerPool::give_out() {
  for (Seat& seat : seats_) {
    while (given_out_ < tasks_.size() && tasks_[given_out_].done()) ++given_out_;
    if (given_out_ == tasks_.size()) return;
    if (seat.task != nullptr) continue;
    seat.task = &tasks_[given_out_++];
    begin(seat);
  }
}

void WorkerPool::wait(std::vector<pollfd>& others) {
  std::vector<pollfd> sockets = others;
  std::vector<Seat*> busy;
  for (Seat& seat : seats_) {
    if (seat.task == nullptr) continue;
    sockets.push_back({seat.worker.socket(), POLLIN, 0});
    busy.push_back(&seat);
  }
  stop_if_interrupted();
  const int ready = poll(sockets.data(), sockets.size(), kInterruptsSeenEvery);
  if (ready < 0 && errno != EINTR)
    throw InternalError(std::string("cannot wait for the worker processes: ") + strerror(errno));
  stop_if_interrupted();
  std::copy_n(sockets.begin(), others.size(), others.begin());
  for (std::size_t i = 0; ready > 0 && i < busy.size(); ++i) {
    if (sockets[others.size() + i].revents == 0) continue;
    busy[i]->task->outcomes.push_back(busy[i]->worker.finish());
    if (!busy[i]->task->done()) {
      begin(*busy[i]);
    } else {
      busy[i]->task = nullptr;
    }
  }
  give_out();
}

}  // namespace gatherfuzz
