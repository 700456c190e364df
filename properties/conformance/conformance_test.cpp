// The simulator's side of the conformance cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "properties/conformance/simulator.h"

namespace gatherfuzz {
namespace {

class ConformanceTest : public testing::TestWithParam<MemoryKind> {};
std::string memory_name(const testing::TestParamInfo<MemoryKind>& memory) {
  return memory.param == MemoryKind::symbolic ? "symbolic" : "host";
}
INSTANTIATE_TEST_SUITE_P(Memories, ConformanceTest, testing::Values(MemoryKind::symbolic, MemoryKind::host),
                         memory_name);

std::string title(const Case& c) { return std::string(c.rule) + ": " + c.name; }

TEST_P(ConformanceTest, EveryCaseHolds) {
  for (const Case& c : all_cases())
    for (const std::string& difference : run_case(c, simulator(GetParam())).differences)
      ADD_FAILURE() << title(c) << ": " << difference;
}

// A case that would also accept another finding, at any of its observations, would show nothing.
TEST_P(ConformanceTest, EveryObservationMatters) {
  for (const Case& c : all_cases()) {
    const int observations = run_case(c, simulator(GetParam())).observations;
    EXPECT_GT(observations, 0) << title(c);
    for (int i = 0; i < observations; ++i)
      EXPECT_FALSE(run_case(c, simulator(GetParam()), i).differences.empty()) << title(c) << ", observation " << i;
  }
}

}  // namespace
}  // namespace gatherfuzz
