// Outcomes as messages between the worker process and the tool.
#pragma once

#include <string>
#include <string_view>

#include "properties/run.h"

namespace gatherfuzz {

std::string to_message(const Outcome& outcome);
// Throws if the message is not one of to_message.
Outcome from_message(std::string_view message);

}  // namespace gatherfuzz
