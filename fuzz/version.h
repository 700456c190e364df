// What this binary is.
#pragma once

#include <string>

namespace gatherfuzz {

// "gatherfuzz 0.1.0 (3f2c1aa, g++ 12.2.0, Release)".
std::string version_text();

}  // namespace gatherfuzz
