// What the environment variables of a fuzz target say. Each function ends the process with exit code 2, and
// words that say what was expected, if its variable says nothing that makes sense.
#pragma once

#include <optional>
#include <vector>

#include "fuzz/ablation.h"
#include "fuzz/campaign.h"

namespace gatherfuzz {

// GATHERFUZZ_FAULT, as `gatherfuzz fuzz --fault`: a fault for every program.
const std::optional<FaultSpec>& planted_fault();
// GATHERFUZZ_SET: flags that every program has, NAME=VALUE with a space between two.
const std::vector<FlagSetting>& flags_of_all();
// GATHERFUZZ_REPORT: the socket of the campaign that started the target; nothing if none did.
std::optional<int> report_socket();
// GATHERFUZZ_WITHOUT.
Ablation left_out();

}  // namespace gatherfuzz
