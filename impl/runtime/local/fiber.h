// A fiber: host code of one rank that can be left in the middle and resumed, so that it reads as
// straight-line single-rank code. Stacks are kept and reused; a page below each one faults on overflow.
// Exceptions may be in flight or being handled when a fiber is left: each fiber has its own exception state.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

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
  // Called inside the body: back to who resumed it. In a cancelled fiber it throws FiberCancelled, or returns
  // at once where it is called by a destructor that unwinding runs.
  void leave();
  // Unwinds a body that was left, to its end.
  void cancel();

  bool done() const { return done_; }
  std::exception_ptr error() const { return error_; }

 private:
  // What the C++ runtime keeps for each thread (Itanium C++ ABI, 2.2.2), and here for each fiber.
  struct ExceptionState {
    void* caught = nullptr;
    unsigned uncaught = 0;
  };
  struct UnmapStack {
    void operator()(std::byte* stack) const;
  };
  using Stack = std::unique_ptr<std::byte[], UnmapStack>;

  static std::vector<Stack>& spare_stacks();
  static Stack take_stack();
  static void enter(unsigned high, unsigned low);
  void run();
  void switch_in();
  void switch_out(bool last);

  std::function<void()> body_;
  Stack stack_;
  ucontext_t inside_{};
  ucontext_t outside_{};
  ExceptionState exceptions_;
  bool started_ = false;
  bool done_ = false;
  bool cancelled_ = false;
  std::exception_ptr error_;
  // Told to AddressSanitizer at every switch, in builds that have it.
  [[maybe_unused]] void* fake_stack_inside_ = nullptr;
  [[maybe_unused]] void* fake_stack_outside_ = nullptr;
  [[maybe_unused]] const void* outside_bottom_ = nullptr;
  [[maybe_unused]] std::size_t outside_size_ = 0;
};

}  // namespace gatherfuzz
