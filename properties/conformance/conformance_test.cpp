// The simulator's side of the conformance cases.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "properties/conformance/random_program.h"
#include "properties/conformance/simulator.h"

namespace gatherfuzz {
namespace {

class ConformanceTest : public testing::TestWithParam<MemoryKind> {};
std::string memory_name(const testing::TestParamInfo<MemoryKind>& memory) {
  return memory.param == MemoryKind::symbolic ? "symbolic" : "host";
}
INSTANTIATE_TEST_SUITE_P(Memories, ConformanceTest, testing::Values(MemoryKind::symbolic, MemoryKind::host),
                         memory_name);

std::string title(const Case& c) {
  return std::string(c.rule) + ": " + c.name;
}

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
      EXPECT_FALSE(run_case(c, simulator(GetParam()), i).differences.empty())
          << title(c) << ", observation " << i;
  }
}

// What a call says does not depend on when queued work runs, nor on what a byte of memory means.
TEST(DrawnPrograms, SayTheSameInEveryTurnAndMemory) {
  int with_values = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    const RandomProgram program = draw_program(seed);
    const Prediction prediction = predict(program, simulator(MemoryKind::host));
    EXPECT_EQ(prediction.contradiction, "") << to_string(program);
    with_values += prediction.values ? 1 : 0;
  }
  EXPECT_GT(with_values, 500);
  EXPECT_LT(with_values, 1500) << "some programs must leave an order open";
}

// The shares that the draw is meant to have: captures that are ended and replayed, and errors of many kinds.
TEST(DrawnPrograms, ReachReplaysAndErrors) {
  std::map<std::string, int> programs;  // that came to this
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    const RandomProgram program = draw_program(seed);
    EXPECT_GE(program.size(), 4u);
    EXPECT_LE(program.size(), static_cast<std::size_t>(kMostSteps));
    const RandomOutcome outcome = run_program(program, *simulator(MemoryKind::host)(1, 0));
    std::set<std::string> said;
    for (std::size_t i = 0; i < program.size(); ++i) {
      said.insert(outcome.steps[i]);
      if (program[i].kind == Step::Kind::replay && outcome.steps[i] == "cudaSuccess") said.insert("a replay");
    }
    for (const std::string& each : said) ++programs[each];
  }
  EXPECT_GT(programs["a replay"], 300);
  for (const Error error :
       {Error::invalid_value, Error::illegal_state, Error::stream_capture_unsupported,
        Error::stream_capture_invalidated, Error::stream_capture_merge, Error::stream_capture_unmatched,
        Error::stream_capture_unjoined, Error::stream_capture_isolation, Error::stream_capture_implicit,
        Error::captured_event, Error::stream_capture_wrong_thread})
    EXPECT_GT(programs[error_name(error)], 0) << error_name(error);
}

TEST(DrawnPrograms, AreWrittenAsCalls) {
  Step begin{Step::Kind::begin, 1, 0, 0, 0, 2, 0}, triple{Step::Kind::triple, 2, 0, 1, 0, 3, 0};
  EXPECT_EQ(to_string(RandomProgram{begin, triple}),
            "begin_capture(stream 1, relaxed)\nlaunch(stream 2, x1 = 3 * x0 + 3)\n");
}

}  // namespace
}  // namespace gatherfuzz
