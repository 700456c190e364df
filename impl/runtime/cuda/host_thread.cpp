#include "impl/runtime/cuda/host_thread.h"

#include <utility>

namespace gatherfuzz {

HostThread::HostThread() : thread_([this] { serve(); }) {}

HostThread::~HostThread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void HostThread::call(const std::function<void()>& f) {
  std::unique_lock lock(mutex_);
  work_ = &f;
  changed_.notify_all();
  changed_.wait(lock, [this] { return work_ == nullptr; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void HostThread::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return work_ != nullptr || ending_; });
    if (work_ == nullptr) return;
    try {
      (*work_)();
    } catch (...) {
      error_ = std::current_exception();
    }
    work_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace gatherfuzz
