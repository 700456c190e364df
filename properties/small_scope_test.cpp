// Every program of a small scope, by the generator's own code.
#include <iostream>
#include <set>

#include "properties/generator.h"
#include "properties/plan.h"
#include "properties/program_lines.h"
#include "properties/run.h"
#include "properties/test_programs.h"

namespace gatherfuzz {
namespace {

constexpr uint64_t kAll = EnumeratedChoices::kAll;

TEST(EnumeratedChoices, AllSequencesEachOnceDepthFirst) {
  EnumeratedChoices choices({{"a", kAll}, {"b", 2}});
  std::vector<std::vector<uint64_t>> sequences;
  do {
    std::vector<uint64_t> taken = {choices.below(3, "a")};
    if (taken[0] == 1) taken.push_back(choices.below(5, "b"));
    taken.push_back(choices.below(9, "not in the scope"));
    sequences.push_back(taken);
  } while (choices.next());
  const std::vector<std::vector<uint64_t>> expected = {{0, 0}, {1, 0, 0}, {1, 1, 0}, {2, 0}};
  EXPECT_EQ(sequences, expected);
  EXPECT_EQ(choices.below(3, "a"), 0u) << "begins anew after the last";
}

TEST(EnumeratedChoices, WeightsSayWhatIsPossibleAndNoMore) {
  EnumeratedChoices choices({{"a", kAll}, {"f", kAll}});
  std::vector<int> picked;
  do picked.push_back(pick<int>(choices, {{7, 0}, {8, 1}, {9, 50}}, "a"));
  while (choices.next());
  EXPECT_EQ(picked, (std::vector<int>{8, 9}));
  std::vector<bool> flips;
  do flips.push_back(flip(choices, 1, "f"));
  while (choices.next());
  EXPECT_EQ(flips, (std::vector<bool>{false, true}));
  EXPECT_FALSE(flip(choices, 0, "f"));
}

// Three actions of any kind, hooks and keep_graph either way, with and without overlap, reuse and a graph
// after 2, 1 or 0 eager calls.
std::vector<Program> small_scope() {
  EnumeratedChoices choices({{"action", kAll},
                             {"hooks", kAll},
                             {"keep_graph", kAll},
                             {"fp8_param_gather", kAll},
                             {"reuse_grad_buf", kAll},
                             {"overlap_grad_reduce", kAll},
                             {"overlap_param_gather", kAll},
                             {"cuda_graph_impl", 2},
                             {"cuda_graph_warmup_steps", 3}});
  std::vector<Program> programs;
  do programs.push_back(generate_program(choices));
  while (choices.next());
  return programs;
}

using Kinds = std::vector<ActionKind>;

// The first three actions; what the generator appends lies behind them.
std::set<Kinds> beginnings(const std::vector<Program>& programs) {
  std::set<Kinds> found;
  for (const Program& program : programs)
    found.insert({program.actions[0].kind, program.actions[1].kind, program.actions[2].kind});
  return found;
}

// Without the generator: every three kinds that are not refused.
std::set<Kinds> legal_triples() {
  std::set<Kinds> found;
  for (const ActionInfo& a : action_table()) {
    for (const ActionInfo& b : action_table()) {
      for (const ActionInfo& c : action_table()) {
        Program program;
        for (const ActionKind kind : {a.kind, b.kind, c.kind}) {
          program.actions.emplace_back().kind = kind;
          program.actions.back().count = 1;
        }
        if (!refusal_before_run(program)) found.insert({a.kind, b.kind, c.kind});
      }
    }
  }
  return found;
}

TEST(SmallScope, LacksNoLegalOrderAndHasEachProgramOnce) {
  const std::vector<Program> programs = small_scope();
  std::set<uint64_t> hashes;
  for (const Program& program : programs) hashes.insert(program_hash(program));
  EXPECT_EQ(hashes.size(), programs.size());
  EXPECT_EQ(beginnings(programs), legal_triples());
}

TEST(SmallScope, EveryProgramPasses) {
  const std::vector<Program> programs = small_scope();
  RunOptions options;
  options.twin = false;
  std::size_t replaying = 0;
  for (const Program& program : programs) {
    ASSERT_EQ(refusal_before_run(program), std::nullopt) << print_program(program);
    const Outcome outcome = run_program(program, options);
    ASSERT_EQ(outcome.verdict, Verdict::pass) << outcome.text << "\n" << print_program(program);
    replaying += plan_program(program).replays > 0;
  }
  std::cout << programs.size() << " programs, " << replaying << " of them replay\n";
  EXPECT_GT(replaying, 0u);
}

// The scope is large enough to hold a defect: dropped staging shows in some program of it.
TEST(SmallScope, FindsAPlantedFault) {
  FaultSpec fault;
  fault.op = "copy_main_params_to_param_buffer";
  std::size_t failed = 0;
  for (Program program : small_scope()) {
    if (!program.flags.reuse_grad_buf_for_mxfp8_param_ag) continue;
    program.faults = {fault};
    RunOptions options;
    options.twin = false;
    failed += run_program(program, options).verdict == Verdict::fail;
    if (failed > 0) break;
  }
  EXPECT_GT(failed, 0u);
}

}  // namespace
}  // namespace gatherfuzz
