// JSON from a file that may hold anything: nothing throws, and an object that names a key twice is told apart
// (a parser that keeps the last of them would hide it).
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "impl/checkpoint/error.h"

namespace gatherfuzz {

using Json = nlohmann::json;

// The object that the text is.
Checked<Json> parse_json_object(std::string_view text);

// Text from a file, for a message: at most 40 characters, quoted and escaped.
std::string excerpt(std::string_view text);

}  // namespace gatherfuzz
