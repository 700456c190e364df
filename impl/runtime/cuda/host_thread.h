// A host thread that makes calls for another one, which waits: what CUDA knows of a thread (its capture mode,
// the captures it began) stays with it.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace gatherfuzz {

class HostThread {
 public:
  HostThread();
  ~HostThread();
  HostThread(const HostThread&) = delete;
  HostThread& operator=(const HostThread&) = delete;

  // Makes the call on this thread and waits for it; throws what it throws.
  void call(const std::function<void()>& f);

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* work_ = nullptr;
  std::exception_ptr error_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace gatherfuzz
