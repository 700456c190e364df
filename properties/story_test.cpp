// What a failure is said to have found, for each way in which a reduced gradient can be wrong; and who wrote
// it.
#include "properties/story.h"

#include "properties/run.h"
#include "properties/test_programs.h"

namespace gatherfuzz {
namespace {

Outcome told(const std::string& recipe, const std::string& lines, RuntimeKind runtime) {
  RunOptions options;
  options.runtime = runtime;
  options.story = true;
  options.twin = false;
  return run_program(small_program(recipe, lines), options);
}

TEST(Story, AReducedGradientSaysWhatItLacks) {
  const struct {
    const char* lines;
    const char* symbolic;
    const char* host;  // null: seen by an earlier hop there
  } cases[] = {
      {"fault drop op=scale_gradients iteration=2\ntrain 2\n", "the sum over ranks, not their mean",
       "that times 2"},
      {"fault duplicate op=scale_gradients iteration=2\ntrain 2\n",
       "the mean, divided by the number of ranks again", "that times 0.5"},
      {"fault insert op=zero_grad_buffer rank=1 iteration=2 before=scale_gradients\ntrain 2\n",
       "nothing of rank 1", "nothing of rank 1"},
      {"fault insert op=zero_grad_buffer iteration=2 before=scale_gradients\ntrain 2\n", "zero", "zero"},
      {"set num_microbatches 2\nfault insert op=zero_grad_buffer rank=1 iteration=2 before=output_backward\n"
       "train 2\n",
       "nothing of rank 1, microbatch 0", nullptr},
      {"fault duplicate op=output_backward rank=1 iteration=2\ntrain 2\n", "rank 1 twice", nullptr},
      {"fault drop op=load_batch rank=1 iteration=2\ntrain 2\n", "a contribution of another batch", nullptr},
      {"set calculate_per_token_loss true\nfault drop op=divide_by_tokens iteration=2\ntrain 2\n",
       "the sum over tokens, not divided by their number",
       "the sum over tokens, not divided by their number"},
      {"set calculate_per_token_loss true\nfault duplicate op=divide_by_tokens iteration=2\ntrain 2\n",
       "that, divided by the tokens of all ranks again", "that, divided by the tokens of all ranks again"},
  };
  for (const auto& c : cases) {
    for (const RuntimeKind runtime : {RuntimeKind::symbolic, RuntimeKind::host}) {
      const char* found = runtime == RuntimeKind::symbolic ? c.symbolic : c.host;
      if (found == nullptr) continue;
      const Outcome outcome = told("bf16", c.lines, runtime);
      ASSERT_EQ(outcome.failure, FailureClass::contribution) << c.lines << outcome.text;
      EXPECT_EQ(outcome.found, found) << c.lines;
    }
  }
}

// A rank whose gradients were wiped stands in the story although there is not room for eight ranks.
TEST(Story, RanksThatAddedNothingComeFirst) {
  Program program = small_program(
      "bf16", "fault insert op=zero_grad_buffer rank=6 iteration=2 before=scale_gradients\ntrain 2\n");
  program.flags.data_parallel_size = 8;
  RunOptions options;
  options.story = true;
  options.twin = false;
  const Outcome eight = run_program(program, options);
  ASSERT_EQ(eight.failure, FailureClass::contribution) << eight.text;
  EXPECT_EQ(eight.found, "nothing of rank 6");
  const std::vector<Writer>& writers = eight.story.last_writers;
  EXPECT_LE(writers.size(), 8u);
  EXPECT_EQ(std::count_if(writers.begin(), writers.end(),
                          [](const Writer& w) { return w.rank == 6 && w.op == "zero_grad_buffer"; }),
            1);
}

TEST(Story, NumbersThatDifferAreTold) {
  const std::string lines = "fault coefficient op=clip_coefficient rank=1 iteration=2 by=0.5\ntrain 2\n";
  const std::string sentence = "the clip coefficient differs between rank 0 and rank 1";
  EXPECT_EQ(told("bf16", lines, RuntimeKind::symbolic).text, sentence);
  const std::string host = told("bf16", lines, RuntimeKind::host).text;
  float first = 0.0f, second = 0.0f;
  ASSERT_EQ(std::sscanf(host.c_str(), (sentence + ": %f and %f").c_str(), &first, &second), 2) << host;
  EXPECT_EQ(second, first * 0.5f);
}

}  // namespace
}  // namespace gatherfuzz
