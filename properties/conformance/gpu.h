// The GPU's side of the conformance cases, where CUDA was there at build time; otherwise the same functions
// say that it was not.
#pragma once

#include <string>

#include "properties/conformance/cuda/fact.h"
#include "properties/conformance/trial.h"

namespace gatherfuzz {

// Why nothing can run on a GPU; empty if it can.
std::string why_no_gpu();

// Card and versions, for a results file.
std::string describe_gpu();

// Turn 0 has no delays. One rank uses NCCL, more ranks loopback.
MakeMachine gpu();

std::vector<Fact> all_facts();

}  // namespace gatherfuzz
