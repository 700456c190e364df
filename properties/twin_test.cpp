// Twins: none differs on a healthy machine, each kind applies often enough to matter, and each class can be
// seen to fail.
#include "properties/twin.h"

#include <map>

#include "properties/generator.h"
#include "properties/program_lines.h"
#include "properties/run.h"
#include "properties/test_programs.h"

namespace gatherfuzz {
namespace {

Program drawn(uint64_t seed) {
  RandomChoices choices(seed);
  return generate_program(choices);
}

Outcome run_beside(Program program, TwinKind kind, RuntimeKind runtime) {
  program.twin = TwinSpec{kind, {}};
  RunOptions options;
  options.runtime = runtime;
  return run_program(program, options);
}

class Twins : public testing::TestWithParam<RuntimeKind> {
 protected:
  bool numbers() const { return GetParam() == RuntimeKind::host; }
};
INSTANTIATE_TEST_SUITE_P(Runtimes, Twins, testing::Values(RuntimeKind::symbolic, RuntimeKind::host),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_P(Twins, NoneDiffersOnAHealthyMachine) {
  for (const TwinInfo& info : twin_table()) {
    int ran = 0;
    for (uint64_t seed = 1; ran < (numbers() ? 4 : 60) && seed < 400; ++seed) {
      const Program program = drawn(seed);
      if (!make_twin(program, plan_program(program), info.kind, numbers())) continue;
      const Outcome outcome = run_beside(program, info.kind, GetParam());
      if (outcome.verdict == Verdict::refused) continue;
      EXPECT_EQ(outcome.verdict, Verdict::pass) << info.name << ", seed " << seed << ": " << outcome.text;
      EXPECT_EQ(outcome.twin, info.kind);
      ++ran;
    }
    const bool applies =
        info.kind != TwinKind::none &&
        (numbers() || (info.kind != TwinKind::loss_scale && info.kind != TwinKind::fp8_param_gather));
    EXPECT_EQ(ran > 0, applies) << info.name;
  }
}

TEST_P(Twins, EachKindSeesAnotherLoss) {
  const Program program = small_program(
      "mxfp8",
      "set loss_scale 8\nset cuda_graph_impl full_iteration\nset cuda_graph_warmup_steps 1\nset num_buckets "
      "2\n"
      "fault coefficient op=average_loss iteration=3 by=2\nstart_loop\ntrain 2\nevaluate 1\nsave_checkpoint "
      "a\ntrain 2\n");
  int applied = 0;
  for (const TwinInfo& info : twin_table()) {
    if (!make_twin(program, plan_program(program), info.kind, numbers())) continue;
    ++applied;
    const Outcome outcome = run_beside(program, info.kind, GetParam());
    ASSERT_EQ(outcome.verdict, Verdict::fail) << info.name;
    EXPECT_EQ(outcome.iteration, 3) << info.name;
    if (numbers()) {
      EXPECT_EQ(outcome.failure, FailureClass::wrong_loss);
      EXPECT_EQ(outcome.also, std::vector<FailureClass>{info.failure});
    } else {
      EXPECT_EQ(outcome.failure, info.failure);
      EXPECT_EQ(outcome.what, "loss");
    }
  }
  // All but none; and on symbolic but loss_scale and fp8_param_gather.
  EXPECT_EQ(applied, static_cast<int>(twin_table().size()) - (numbers() ? 1 : 3));
}

// Nothing else of the last step tells: its loss, norm and coefficient were there before Adam.
TEST_P(Twins, MainParamsAreCompared) {
  const Program program =
      small_program("mxfp8", "twin again\nfault previous-value op=adam iteration=2\ntrain 2\n");
  RunOptions options;
  options.runtime = GetParam();
  options.judging = Judging::none;
  const Outcome outcome = run_program(program, options);
  EXPECT_EQ(outcome.failure, FailureClass::nondeterministic) << outcome.text;
  EXPECT_EQ(outcome.what, "main params");
  EXPECT_EQ(outcome.iteration, 2);
}

TEST_P(Twins, NormAndCoefficientAreCompared) {
  const struct {
    const char* fault;
    const char* what;
  } cases[] = {{"fault duplicate op=grad_norm_partial iteration=2", "grad norm"},
               {"fault coefficient op=clip_coefficient iteration=2 by=0.001", "clip coefficient"}};
  for (const auto& c : cases) {
    RunOptions options;
    options.runtime = GetParam();
    options.judging = Judging::none;
    const Outcome outcome =
        run_program(small_program("mxfp8", std::string("twin again\n") + c.fault + "\ntrain 2\n"), options);
    EXPECT_EQ(outcome.failure, FailureClass::nondeterministic) << outcome.text;
    EXPECT_EQ(outcome.what, c.what);
  }
}

// With as many ops as the program takes, its twin of more buckets does not come to its end.
TEST_P(Twins, ATwinThatDoesNotComeToItsEndDiffers) {
  const Program program = small_program("mxfp8", "twin buckets\ntrain 2\n");
  RunOptions options;
  options.runtime = GetParam();
  options.twin = false;
  options.op_budget = run_program(program, options).ops;
  EXPECT_EQ(run_program(program, options).verdict, Verdict::pass);
  options.twin = true;
  const Outcome outcome = run_program(program, options);
  EXPECT_EQ(outcome.failure, FailureClass::flag_differs) << outcome.text;
  EXPECT_EQ(outcome.what, "end");
  EXPECT_NE(outcome.text.find("budget"), std::string::npos) << outcome.text;
}

TEST_P(Twins, EveryClassGetsItsShare) {
  constexpr int kPrograms = 2000;
  std::map<FailureClass, int> classes;
  std::map<TwinKind, int> kinds;
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    const Program program = drawn(seed);
    const std::optional<Twin> twin = choose_twin(program, plan_program(program), numbers());
    ASSERT_TRUE(twin) << "any program can run again";
    ++classes[twin->failure];
    ++kinds[twin->kind];
  }
  for (const FailureClass c : {FailureClass::graph_differs, FailureClass::eval_disturbs,
                               FailureClass::flag_differs, FailureClass::nondeterministic})
    EXPECT_GT(classes[c], kPrograms / 10) << name_of(c);
  EXPECT_GT(classes[FailureClass::resume_differs], kPrograms / 50) << "few programs save, and then train";
  for (const TwinInfo& info : twin_table())
    if (info.kind != TwinKind::none)
      std::cout << info.name << " " << 100.0 * kinds[info.kind] / kPrograms << "%\n";
}

}  // namespace
}  // namespace gatherfuzz
