// How sharp the one-hop bounds are: honest steps use at most half of each bound; weights one version old, a
// bucket's scale doubled, a rank missing exceed one. The table is printed.
#include <cmath>
#include <cstdio>

#include "properties/run.h"
#include "properties/test_programs.h"

namespace gatherfuzz {
namespace {

constexpr int kSteps = 12;

StepShares shares_at(const std::string& recipe, const std::string& fault, int iteration) {
  std::string lines = "set grad_reduce_in_fp32 true\n";
  if (!fault.empty()) lines += "fault " + fault + " iteration=" + std::to_string(iteration) + "\n";
  RunOptions options;
  options.runtime = RuntimeKind::host;
  options.judging = Judging::keep_going;
  options.twin = false;
  const Program program = small_program(recipe, lines + "train " + std::to_string(iteration) + "\n");
  const Outcome outcome = run_program(program, options);
  EXPECT_EQ(outcome.steps, iteration) << outcome.text;
  if (outcome.steps != iteration) return {};
  return outcome.shares[static_cast<std::size_t>(iteration) - 1];
}

struct Row {
  int steps = 0, exceeded = 0, weights = 0, gradient = 0, loss = 0, reduced = 0;
  double smallest_gradient = 1e30;
};

Row row_of(const std::string& recipe, const std::string& fault) {
  Row row;
  for (int iteration = 3; iteration <= kSteps; ++iteration) {
    const StepShares s = shares_at(recipe, fault, iteration);
    ++row.steps;
    row.weights += s.weights > 1 ? 1 : 0;
    row.gradient += s.gradient > 1 ? 1 : 0;
    row.loss += s.loss > 1 ? 1 : 0;
    row.reduced += s.reduced > 1 ? 1 : 0;
    row.exceeded += s.weights > 1 || s.gradient > 1 || s.loss > 1 || s.reduced > 1 ? 1 : 0;
    row.smallest_gradient = std::min(row.smallest_gradient, s.gradient);
  }
  return row;
}

TEST(Sensitivity, HonestStepsUseLittleAndFaultsExceed) {
  std::printf("%-6s %-24s %6s %9s %9s %9s %9s %9s  %s\n", "recipe", "run", "steps", "any hop", "weights",
              "gradient", "loss", "reduced", "smallest share of the gradient bound");
  for (const std::string recipe : {"fp32", "bf16", "mxfp8"}) {
    // Where weights are views of the param buffer, a missing staging leaves them as they were.
    const std::string stale =
        recipe == "mxfp8" ? "previous-value op=quantize" : "drop op=copy_main_params_to_param_buffer";
    const std::pair<const char*, std::string> runs[] = {
        {"weights one version old", stale},
        {"a bucket's scale doubled", "coefficient op=scale_gradients bucket=0 by=2"},
        {"one rank missing", "insert op=zero_grad_buffer rank=1 before=scale_gradients"}};
    for (const auto& [name, fault] : runs) {
      const Row row = row_of(recipe, fault);
      std::printf("%-6s %-24s %6d %9d %9d %9d %9d %9d  %.3g\n", recipe.c_str(), name, row.steps, row.exceeded,
                  row.weights, row.gradient, row.loss, row.reduced, row.smallest_gradient);
      EXPECT_GE(row.exceeded * 100, row.steps * 95) << recipe << ": " << name;
    }
    const StepShares first = shares_at(recipe, "", kSteps);
    RunOptions options;
    options.runtime = RuntimeKind::host;
    const Outcome honest =
        run_program(small_program(recipe, "train " + std::to_string(kSteps) + "\n"), options);
    EXPECT_EQ(honest.verdict, Verdict::pass) << honest.text;
    EXPECT_GT(honest.weights_compared, 100u);
    std::printf("%-6s %-24s %6d  worst share %.3g (last step: loss %.3g, gradient %.3g, norm %.3g)\n",
                recipe.c_str(), "honest", kSteps, honest.worst_share, first.loss, first.gradient, first.norm);
    EXPECT_LE(honest.worst_share, 0.5);
  }
}

}  // namespace
}  // namespace gatherfuzz
