// The end of a target that found a failure: one function a class, since services that sort crashes tell them
// apart by the functions of the stack trace.
#pragma once

#include "properties/verdict.h"

namespace gatherfuzz {

// Aborts in a function of the namespace gatherfuzz::failure with the class's name, as zeroed_weights.
[[noreturn]] void abort_with_class(FailureClass failure);

}  // namespace gatherfuzz
