// A fault with `after=` waits for its actions.
#include <gtest/gtest.h>

#include "properties/run.h"
#include "properties/test_programs.h"

namespace gatherfuzz {
namespace {

Outcome run_with(const std::string& after, const std::string& actions) {
  RunOptions options;
  options.twin = false;
  return run_program(small_program("bf16", "fault duplicate op=adam after=" + after + "\n" + actions),
                     options);
}

TEST(FaultAfter, WaitsForTheActionsInTheirOrder) {
  const struct {
    const char* after;
    const char* actions;
    int iteration;  // in which the optimizer steps twice; 0: in none
  } cases[] = {
      {"evaluate", "train 2\nevaluate 1\ntrain 1\n", 3},
      {"evaluate", "train 2\n", 0},
      {"train", "train 2\ntrain 1\n", 3},  // the action itself does not count
      {"evaluate,train", "train 1\nevaluate 1\ntrain 2\nskip_iteration\ntrain 1\n", 4},
      {"evaluate,skip_iteration", "skip_iteration\nevaluate 1\ntrain 1\n", 0},
      {"train,train", "train 1\nevaluate 1\ntrain 1\ntrain 1\n", 3},
  };
  for (const auto& c : cases) {
    const Outcome outcome = run_with(c.after, c.actions);
    if (c.iteration == 0) {
      EXPECT_EQ(outcome.verdict, Verdict::error) << c.after << " " << outcome.text;
      continue;
    }
    EXPECT_EQ(outcome.failure, FailureClass::ownership) << c.after << " " << outcome.text;
    EXPECT_EQ(outcome.iteration, c.iteration) << c.after;
  }
}

TEST(FaultAfter, OtherWordsAreErrors) {
  for (const std::string after :
       {"evaluat", "", "train,", "train,,train", "train,train,train,train,train,train,train,train,train"}) {
    const ParseResult parsed =
        parse_program("gatherfuzz program v1\nfault drop op=adam after=" + after + "\ntrain 1\n");
    ASSERT_FALSE(parsed.ok()) << after;
    EXPECT_TRUE(parsed.errors[0].message.starts_with(
        "expected after= to be 1 to 8 names of actions with commas between them, found '"))
        << parsed.errors[0].message;
  }
}

}  // namespace
}  // namespace gatherfuzz
