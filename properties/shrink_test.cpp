// The shrinker: candidates are smaller and legal, what matters stays, and real failures come down to what
// they need.
#include "properties/shrink.h"

#include "properties/generator.h"
#include "properties/run.h"
#include "properties/test_programs.h"

namespace gatherfuzz {
namespace {

Program drawn(uint64_t seed) {
  RandomChoices choices(seed);
  return generate_program(choices);
}

TEST(Shrink, EveryCandidateIsSmallerAndLegal) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Program program = drawn(seed);
    for (const Program& candidate : simpler(program)) {
      EXPECT_LT(size_of_program(candidate), size_of_program(program)) << print_program(candidate);
      EXPECT_EQ(refusal_before_run(candidate), std::nullopt) << print_program(candidate);
    }
  }
}

TEST(Shrink, FaultAndExpectationStay) {
  Program program =
      small_program("mxfp8", "fault drop op=quantize\ntrain 5\nevaluate 1\nexpect fail: race\n");
  const Shrunk shrunk = shrink(program, [](const Program&) { return true; });
  EXPECT_TRUE(shrunk.ended);
  EXPECT_EQ(shrunk.program.faults.size(), 1u);
  EXPECT_EQ(shrunk.program.expect->failure, FailureClass::race);
  EXPECT_TRUE(shrunk.program.actions.empty());
  EXPECT_EQ(shrunk.program.flags, Flags{});
}

// What a deletion alone does not come to.
TEST(Shrink, ActionsThatDoTheSameTakeEachOthersPlace) {
  const auto offers = [](const std::string& actions, const std::string& simpler_actions) {
    const Program wanted = small_program("bf16", simpler_actions);
    for (const Program& candidate : simpler(small_program("bf16", actions)))
      if (candidate == wanted) return true;
    return false;
  };
  EXPECT_TRUE(offers("start_loop\ntrain 2\nend_loop\ntrain 1\n", "train 2\nstart_loop\ntrain 1\n"));
  EXPECT_TRUE(offers("train 2\nrerun_forward_backward\ntrain 1\n", "train 3\ntrain 1\n"));
}

TEST(Shrink, NothingThatPassesIsTaken) {
  const Program program = without_comments(drawn(3));
  const Shrunk shrunk = shrink(program, [](const Program&) { return false; });
  EXPECT_TRUE(shrunk.ended);
  EXPECT_EQ(shrunk.program, program);
  EXPECT_EQ(shrunk.runs, simpler(program).size());
}

TEST(Shrink, TheLimitEndsIt) {
  const Shrunk shrunk = shrink(drawn(3), [](const Program&) { return false; }, {5, ShrinkLimit{}.time});
  EXPECT_FALSE(shrunk.ended);
  EXPECT_EQ(shrunk.runs, 5u);
}

// The defect that the project starts from, out of random programs: what is left is a graph captured with
// hooks on and a loop that begins with hooks off.
TEST(Shrink, TheSeedDefectComesDownToWhatItNeeds) {
  FaultSpec fault;
  fault.op = "copy_main_params_to_param_buffer";
  fault.when = FaultWhen::replay_with_hooks_off;
  int found = 0;
  for (uint64_t seed = 1; seed <= 1000 && found < 5; ++seed) {
    Program program = drawn(seed);
    program.faults = {fault};
    RunOptions options;
    options.twin = false;
    const Outcome outcome = run_program(program, options);
    if (outcome.failure != FailureClass::zeroed_weights) continue;
    ++found;
    const Shrunk shrunk = shrink(program, [&](const Program& candidate) {
      const Outcome again = run_program(candidate, options);
      return again.failure == outcome.failure && again.signature == outcome.signature;
    });
    EXPECT_TRUE(shrunk.ended) << shrunk.runs;
    EXPECT_LE(shrunk.program.actions.size(), 3u) << print_program(shrunk.program);
    EXPECT_LE(size_of_program(shrunk.program)[0], 11) << print_program(shrunk.program);
    EXPECT_TRUE(shrunk.program.flags.overlap_param_gather);
    EXPECT_TRUE(captures_full_iteration(shrunk.program.flags));
  }
  EXPECT_EQ(found, 5);
}

}  // namespace
}  // namespace gatherfuzz
