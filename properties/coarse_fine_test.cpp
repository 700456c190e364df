// The coarse model (a module's pass is one op) and the fine one (every kernel is one) come from the same
// layer code: a program has the same verdict with either, healthy or with a fault.
#include "properties/run.h"
#include "properties/test_programs.h"

namespace gatherfuzz {
namespace {

// Faults that name a kernel of the model have no op to change in the coarse one.
bool names_a_kernel(const Program& program) {
  for (const FaultSpec& fault : program.faults)
    if (fault.op == "cross_entropy_backward") return true;
  return false;
}

TEST(CoarseAndFine, AgreeOnEveryRegression) {
  int compared = 0, failing = 0;
  for (const CorpusFile& file : corpus_folder("regressions")) {
    if (names_a_kernel(file.program)) continue;
    RunOptions options;
    options.coarse = true;
    const Outcome coarse = run_program(file.program, options);
    options.coarse = false;
    const Outcome fine = run_program(file.program, options);
    EXPECT_EQ(name_of(coarse.verdict), name_of(fine.verdict))
        << file.name << ": " << coarse.text << " / " << fine.text;
    EXPECT_EQ(coarse.failure, fine.failure) << file.name;
    EXPECT_EQ(coarse.what, fine.what) << file.name;
    EXPECT_EQ(coarse.weights_compared == 0, fine.weights_compared == 0) << file.name;
    ++compared;
    failing += coarse.verdict == Verdict::fail ? 1 : 0;
  }
  EXPECT_GE(compared, 30);
  EXPECT_GE(failing, 14);
}

}  // namespace
}  // namespace gatherfuzz
