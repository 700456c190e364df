// The failure block: everything that a reader of a log needs of one failure.
#pragma once

#include <string>

#include "fuzz/failure.h"

namespace gatherfuzz {

// At most 60 lines; a longer program is cut short.
std::string failure_text(const Failure& failure);

}  // namespace gatherfuzz
