#include "impl/runtime/local/fiber.h"

#include <cxxabi.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define GATHERFUZZ_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GATHERFUZZ_ASAN 1
#endif
#endif
#ifdef GATHERFUZZ_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace gatherfuzz {

namespace {

constexpr std::size_t kStackBytes = std::size_t{1} << 20;
constexpr std::size_t kGuardBytes = std::size_t{1} << 16;  // at the low end, where an overflowing stack goes

}  // namespace

void Fiber::UnmapStack::operator()(std::byte* stack) const {
  munmap(stack, kGuardBytes + kStackBytes);
}

std::vector<Fiber::Stack>& Fiber::spare_stacks() {
  static thread_local std::vector<Stack> stacks;
  return stacks;
}

Fiber::Stack Fiber::take_stack() {
  std::vector<Stack>& spare = spare_stacks();
  if (!spare.empty()) {
    Stack stack = std::move(spare.back());
    spare.pop_back();
    return stack;
  }
  void* memory = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kGuardBytes, PROT_NONE) != 0) throw std::bad_alloc();
  return Stack(static_cast<std::byte*>(memory));
}

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), stack_(take_stack()) {
  getcontext(&inside_);
  inside_.uc_stack.ss_sp = stack_.get() + kGuardBytes;
  inside_.uc_stack.ss_size = kStackBytes;
  inside_.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&inside_, reinterpret_cast<void (*)()>(&Fiber::enter), 2, static_cast<unsigned>(self >> 32),
              static_cast<unsigned>(self));
}

Fiber::~Fiber() {
  cancel();
  spare_stacks().push_back(std::move(stack_));
}

void Fiber::enter(unsigned high, unsigned low) {
  reinterpret_cast<Fiber*>((static_cast<uintptr_t>(high) << 32) | low)->run();
}

void Fiber::run() {
#ifdef GATHERFUZZ_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &outside_bottom_, &outside_size_);
#endif
  try {
    body_();
  } catch (const FiberCancelled&) {
  } catch (...) {
    error_ = std::current_exception();
  }
  done_ = true;
  switch_out(true);
}

void Fiber::switch_in() {
  ExceptionState outside;
  void* const current = abi::__cxa_get_globals();
  std::memcpy(&outside, current, sizeof outside);
  std::memcpy(current, &exceptions_, sizeof exceptions_);
#ifdef GATHERFUZZ_ASAN
  __sanitizer_start_switch_fiber(&fake_stack_outside_, stack_.get() + kGuardBytes, kStackBytes);
#endif
  swapcontext(&outside_, &inside_);
#ifdef GATHERFUZZ_ASAN
  __sanitizer_finish_switch_fiber(fake_stack_outside_, nullptr, nullptr);
#endif
  std::memcpy(&exceptions_, current, sizeof exceptions_);
  std::memcpy(current, &outside, sizeof outside);
}

void Fiber::switch_out([[maybe_unused]] bool last) {
#ifdef GATHERFUZZ_ASAN
  __sanitizer_start_switch_fiber(last ? nullptr : &fake_stack_inside_, outside_bottom_, outside_size_);
#endif
  swapcontext(&inside_, &outside_);
#ifdef GATHERFUZZ_ASAN
  __sanitizer_finish_switch_fiber(fake_stack_inside_, &outside_bottom_, &outside_size_);
#endif
}

void Fiber::resume() {
  if (done_) return;
  started_ = true;
  switch_in();
}

void Fiber::leave() {
  if (!cancelled_) switch_out(false);
  if (cancelled_ && std::uncaught_exceptions() == 0) throw FiberCancelled{};
}

void Fiber::cancel() {
  if (!started_ || done_) return;
  cancelled_ = true;
  switch_in();
}

}  // namespace gatherfuzz
