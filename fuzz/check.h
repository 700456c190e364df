// `gatherfuzz check`: runs programs and judges them by every oracle.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "properties/run.h"

namespace gatherfuzz {

using FlagSetting = std::pair<std::string, std::string>;  // name, value

struct CheckOptions {
  std::vector<std::string> inputs;  // files, folders (every *.program below), "-" for standard input
  std::vector<RuntimeKind> runtimes;
  std::vector<FlagSetting> set;  // changes flags of every program
  bool json = false;
};

// Returns the exit code. Throws UsageError, InternalError, Interrupted.
int check(const CheckOptions& options);

// Throws UsageError with what was expected.
void apply_settings(Flags& flags, const std::vector<FlagSetting>& set);

}  // namespace gatherfuzz
