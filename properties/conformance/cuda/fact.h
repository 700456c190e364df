// Facts about CUDA and NCCL that the runtime contract does not offer and a training loop still meets. Each
// drives CUDA directly, runs on a GPU only, and leaves no capture, error or allocation behind.
#pragma once

#include <span>

#include "properties/conformance/observations.h"

namespace gatherfuzz {

struct Fact {
  const char* rule;  // e.g. "rule 23"
  const char* name;
  void (*body)(Observations& o);
  const char* correction = "";  // as in Case
};

std::span<const Fact> event_facts();
std::span<const Fact> memory_facts();
std::span<const Fact> graph_facts();
std::span<const Fact> library_facts();

}  // namespace gatherfuzz
