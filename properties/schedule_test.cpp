// The order in which runnable ops run changes nothing in a race-free step; where a wait is missing, it does.
#include "impl/runtime/local/world.h"
#include "properties/run.h"
#include "properties/test_programs.h"

namespace gatherfuzz {
namespace {

const char* const kActions =
    "set num_microbatches 2\nset num_buckets 3\nset cuda_graph_impl local\nset cuda_graph_scope "
    "full_iteration\n"
    "set cuda_graph_warmup_steps 1\n%s\ntrain 3\nevaluate 1\ntrain 2\n";

std::string with(const std::string& lines) {
  std::string text = kActions;
  return text.replace(text.find("%s"), 2, lines);
}

TEST(Schedule, EveryOrderPassesAllOracles) {
  int runs = 0;
  for (const char* recipe : {"mxfp8", "bf16"}) {
    for (const std::string schedule : {"fifo", "reverse", "random", "pct"}) {
      for (int seed = 1; seed <= (schedule == "random" || schedule == "pct" ? 4 : 1); ++seed) {
        for (const RuntimeKind runtime : {RuntimeKind::symbolic, RuntimeKind::host}) {
          if (runtime == RuntimeKind::host && seed > 1) continue;
          RunOptions options;
          options.runtime = runtime;
          const Outcome outcome = run_program(
              small_program(recipe,
                            with("set schedule " + schedule + "\nset schedule_seed " + std::to_string(seed))),
              options);
          EXPECT_EQ(outcome.verdict, Verdict::pass)
              << recipe << " " << schedule << " " << seed << ": " << outcome.text;
          ++runs;
        }
      }
    }
  }
  EXPECT_EQ(runs, 2 * (2 * 2 + 2 * (4 + 1)));
}

// Waits of the step, by the op that they wait for: without one, some order must be wrong. (The wait for
// reduce_scatter is no such: the all-reduce of the loss follows on the same stream and is waited for as
// well.)
TEST(Schedule, AMissingWaitIsSeenInSomeOrder) {
  for (const std::string op : {"all_gather", "set_scalar", "scale_gradients", "all_reduce"}) {
    int seen = 0;
    for (int seed = 1; seed <= 12 && seen == 0; ++seed) {
      for (const std::string schedule : {"reverse", "random", "pct"}) {
        const Outcome outcome =
            run_program(small_program("mxfp8", "set num_buckets 3\nset schedule " + schedule +
                                                   "\nset schedule_seed " + std::to_string(seed) +
                                                   "\nfault drop-wait op=" + op + " iteration=2+\ntrain 4\n"),
                        RunOptions{});
        seen += outcome.verdict == Verdict::fail ? 1 : 0;
      }
    }
    EXPECT_GT(seen, 0) << "no order showed that the wait for " << op << " is missing";
  }
}

TEST(Schedule, ADelayHoldsAStreamBack) {
  const Outcome outcome = run_program(
      small_program("mxfp8", "set num_buckets 3\ndelay comm by=40 op=all_gather\ntrain 3\n"), RunOptions{});
  EXPECT_EQ(outcome.verdict, Verdict::pass) << outcome.text;
  const Outcome racy = run_program(small_program("mxfp8",
                                                 "set num_buckets 3\ndelay comm by=40 op=all_gather\n"
                                                 "fault drop-wait op=all_gather iteration=2+\ntrain 3\n"),
                                   RunOptions{});
  EXPECT_EQ(racy.verdict, Verdict::fail) << "a gather that is late and not waited for must show";
}

}  // namespace
}  // namespace gatherfuzz
