#include "fuzz/targets/abort_with_class.h"

#include <cstdio>
#include <cstdlib>

namespace gatherfuzz {

// The functions differ by what they print, so that no compiler makes one of them.
#define GATHERFUZZ_ABORT_IN(name)                                                 \
  [[noreturn, gnu::noinline]] void name() {                                       \
    std::fputs("gatherfuzz: aborts in gatherfuzz::failure::" #name "\n", stderr); \
    std::abort();                                                                 \
  }

namespace failure {
GATHERFUZZ_ABORT_IN(deadlock)
GATHERFUZZ_ABORT_IN(capture_error)
GATHERFUZZ_ABORT_IN(use_after_free)
GATHERFUZZ_ABORT_IN(uninitialized)
GATHERFUZZ_ABORT_IN(race)
GATHERFUZZ_ABORT_IN(zeroed_weights)
GATHERFUZZ_ABORT_IN(stale_weights)
GATHERFUZZ_ABORT_IN(wrong_weights)
GATHERFUZZ_ABORT_IN(polluted_grads)
GATHERFUZZ_ABORT_IN(contribution)
GATHERFUZZ_ABORT_IN(ownership)
GATHERFUZZ_ABORT_IN(skip_differs)
GATHERFUZZ_ABORT_IN(replica_differs)
GATHERFUZZ_ABORT_IN(eval_disturbs)
GATHERFUZZ_ABORT_IN(resume_differs)
GATHERFUZZ_ABORT_IN(graph_differs)
GATHERFUZZ_ABORT_IN(flag_differs)
GATHERFUZZ_ABORT_IN(wrong_loss)
GATHERFUZZ_ABORT_IN(nondeterministic)
GATHERFUZZ_ABORT_IN(crash)
GATHERFUZZ_ABORT_IN(timeout)
GATHERFUZZ_ABORT_IN(runtime_differs)
GATHERFUZZ_ABORT_IN(over_refused)
}  // namespace failure

void abort_with_class(FailureClass failure_class) {
  switch (failure_class) {
    case FailureClass::deadlock:
      failure::deadlock();
    case FailureClass::capture_error:
      failure::capture_error();
    case FailureClass::use_after_free:
      failure::use_after_free();
    case FailureClass::uninitialized:
      failure::uninitialized();
    case FailureClass::race:
      failure::race();
    case FailureClass::zeroed_weights:
      failure::zeroed_weights();
    case FailureClass::stale_weights:
      failure::stale_weights();
    case FailureClass::wrong_weights:
      failure::wrong_weights();
    case FailureClass::polluted_grads:
      failure::polluted_grads();
    case FailureClass::contribution:
      failure::contribution();
    case FailureClass::ownership:
      failure::ownership();
    case FailureClass::skip_differs:
      failure::skip_differs();
    case FailureClass::replica_differs:
      failure::replica_differs();
    case FailureClass::eval_disturbs:
      failure::eval_disturbs();
    case FailureClass::resume_differs:
      failure::resume_differs();
    case FailureClass::graph_differs:
      failure::graph_differs();
    case FailureClass::flag_differs:
      failure::flag_differs();
    case FailureClass::wrong_loss:
      failure::wrong_loss();
    case FailureClass::nondeterministic:
      failure::nondeterministic();
    case FailureClass::crash:
      failure::crash();
    case FailureClass::timeout:
      failure::timeout();
    case FailureClass::runtime_differs:
      failure::runtime_differs();
    case FailureClass::over_refused:
      failure::over_refused();
  }
  std::abort();  // no class
}

}  // namespace gatherfuzz
