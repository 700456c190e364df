// A fiber: host code of one rank that can be left in the middle and resumed, so that it reads as straight-line
// single-rank code. Stacks are kept and reused.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>

namespace gatherfuzz {

// Thrown inside a fiber that is being abandoned, so that its destructors run.
struct FiberCancelled {};

class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the body until it calls leave() or ends.
  void resume();
  // Called inside the body: back to who resumed it. Throws FiberCancelled if the fiber was cancelled meanwhile. Must not
  // be called while an exception is being handled.
  void leave();
  // Unwinds a body that was left; it must not leave again.
  void cancel();

  bool done() const { return done_; }
  std::exception_ptr error() const { return error_; }

 private:
  static void enter(unsigned high, unsigned low);
  void run();
  void switch_in();
  void switch_out(bool last);

  std::function<void()> body_;
  std::unique_ptr<std::byte[]> stack_;
  ucontext_t inside_{};
  ucontext_t outside_{};
  bool started_ = false;
  bool done_ = false;
  bool cancelled_ = false;
  std::exception_ptr error_;
  void* fake_stack_inside_ = nullptr;
  void* fake_stack_outside_ = nullptr;
  const void* outside_bottom_ = nullptr;
  std::size_t outside_size_ = 0;
};

}  // namespace gatherfuzz
