// Mutants and splices are legal, bounded, varied, and pass on a healthy machine.
#include "properties/mutate.h"

#include <map>
#include <set>

#include "properties/generator.h"
#include "properties/program_lines.h"
#include "properties/run.h"
#include "properties/states.h"
#include "properties/test_programs.h"

namespace gatherfuzz {
namespace {

Program drawn(uint64_t seed) {
  RandomChoices choices(seed);
  return generate_program(choices);
}

// Mutants of mutants, as in a campaign.
std::vector<Program> mutants(int n) {
  std::vector<Program> pool = {drawn(1), drawn(2), drawn(3)};
  RandomChoices choices(17);
  while (static_cast<int>(pool.size()) < n) {
    const Program& one = pool[choices.below(pool.size(), "one")];
    const Program& other = pool[choices.below(pool.size(), "other")];
    pool.push_back(flip(choices, 20, "splice") ? splice(one, other, choices) : mutate(one, choices));
  }
  return pool;
}

TEST(Mutate, AllAreLegalBoundedAndPrintable) {
  std::set<uint64_t> hashes;
  for (const Program& program : mutants(3000)) {
    ASSERT_EQ(refusal_before_run(program), std::nullopt) << print_program(program);
    EXPECT_LE(training_steps(program), kMostGeneratedSteps + 2) << print_program(program);
    const ParseResult parsed = parse_program(print_program(program));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed.program, program);
    hashes.insert(program_hash(program));
  }
  EXPECT_GT(hashes.size(), 3000u * 8 / 10) << "few come twice";
}

TEST(Mutate, FaultsExpectationsTwinsAndCommentsGo) {
  Program program = small_program(
      "mxfp8", "twin again\nfault drop op=quantize\n# a comment\ntrain 2  # behind\nexpect fail: race\n");
  RandomChoices choices(1);
  for (int i = 0; i < 50; ++i) {
    for (const Program& changed : {mutate(program, choices), splice(program, program, choices)}) {
      EXPECT_TRUE(changed.faults.empty() && !changed.expect && !changed.twin);
      EXPECT_EQ(changed, without_comments(changed));
    }
  }
}

// One edit seldom changes one thing only, since what it makes illegal is repaired; over many mutants of one
// program everything that a line can say is changed.
TEST(Mutate, ReachesWhatAProgramCanSay) {
  const Program program = small_program(
      "mxfp8", "set loss_scale 1\ntrain 2\nstart_loop\nevaluate 1\ninject_nonfinite rank=0\ntrain 1\n");
  RandomChoices choices(9);
  std::set<ActionKind> kinds;
  std::map<std::string_view, int> flags;
  int delays = 0, moved = 0;
  std::set<std::string> lines;
  for (int i = 0; i < 5000; ++i) {
    const Program changed = mutate(program, choices);
    delays += !changed.delays.empty();
    for (const Action& action : changed.actions) {
      kinds.insert(action.kind);
      lines.insert(print_action(action));
    }
    moved +=
        changed.actions.size() == program.actions.size() && changed.actions[0].kind == ActionKind::start_loop;
    for (const FlagInfo& info : flag_table())
      if (info.get(changed.flags) != info.get(program.flags)) ++flags[info.name];
  }
  EXPECT_EQ(kinds.size(), action_table().size());
  EXPECT_GT(delays, 0);
  EXPECT_GT(moved, 0);
  for (const char* line : {"start_loop hooks=on", "inject_nonfinite rank=1",
                           "inject_nonfinite rank=0 where=shard", "evaluate 4", "train 4"})
    EXPECT_TRUE(lines.contains(line)) << line;
  for (const FlagInfo& info : flag_table()) {
    const bool fixed = info.name == "use_distributed_optimizer";
    EXPECT_EQ(flags[info.name] > 0, !fixed) << info.name;
  }
}

TEST(Mutate, PassOnAHealthyMachine) {
  int refused = 0;
  for (const Program& program : mutants(300)) {
    const Outcome outcome = run_program(program, {});
    refused += outcome.verdict == Verdict::refused;
    EXPECT_TRUE(outcome.verdict == Verdict::pass || outcome.verdict == Verdict::refused)
        << outcome.text << "\n"
        << print_program(program);
  }
  EXPECT_LT(refused, 60);
}

TEST(States, TellHostStatesApart) {
  const auto states = [](const std::string& more) {
    return run_program(small_program("mxfp8", more), {}).states;
  };
  const std::string graph = "set cuda_graph_impl full_iteration\nset cuda_graph_warmup_steps 1\n";
  const auto once = states(graph + "train 3\n");
  EXPECT_EQ(once.size(), 3u) << "before anything, without a graph, with one";
  EXPECT_EQ(states(graph + "train 9\n"), once) << "more of the same";
  EXPECT_NE(states(graph + "start_loop\ntrain 3\n"), once);
  EXPECT_NE(states("train 3\n"), once);
  // The loop begins with hooks off: due, its first step cannot be captured; not due, it would not be anyway.
  const std::string later = "set cuda_graph_impl full_iteration\nset cuda_graph_warmup_steps 9\n";
  const std::string loop = "train 1\nstart_loop\ntrain 1\n";
  EXPECT_NE(states(graph + loop), states(later + loop));
  std::set<uint32_t> reached;
  for (uint64_t seed = 1; seed <= 200; ++seed)
    for (const uint32_t state : run_program(drawn(seed), {}).states) reached.insert(state);
  EXPECT_GT(reached.size(), 1000u);
}

}  // namespace
}  // namespace gatherfuzz
