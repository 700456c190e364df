// What a campaign counts of the programs that it ran, and how it says so.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "properties/action_pairs.h"
#include "properties/run.h"

namespace gatherfuzz {

struct CampaignCounts {
  uint64_t programs = 0;
  uint64_t twins = 0;                                         // runs beside one
  std::array<uint64_t, std::size(kVerdictNames)> verdicts{};  // of programs
  std::array<uint64_t, std::size(kRuntimeNames)> runs{};
  std::vector<uint64_t> shapes;  // programs, for each of interesting_shapes()
  std::set<ActionPair> pairs;    // of neighbours in a program

  CampaignCounts();
  // A program and its outcomes; the last one is its verdict.
  void add(const Program& program, const std::vector<RuntimeKind>& runtimes,
           const std::vector<Outcome>& outcomes);
  uint64_t of(Verdict verdict) const { return verdicts[static_cast<std::size_t>(verdict)]; }

  // Of all programs, those that have shape number i, from 0 to 1.
  double share_of_shape(std::size_t i) const;
  // "shapes: one rank 31.2%, ...", of all programs.
  std::string shapes_text() const;
};

// What `pairs` is measured against.
uint64_t number_of_legal_action_pairs();

}  // namespace gatherfuzz
