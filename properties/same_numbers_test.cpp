// Flags that must not change a number, on real numbers: losses and norms of every step agree bit for bit.
#include <bit>

#include "properties/run.h"
#include "properties/test_programs.h"

namespace gatherfuzz {
namespace {

std::vector<uint32_t> numbers_of(const Program& program) {
  std::vector<uint32_t> bits;
  RunOptions options;
  options.runtime = RuntimeKind::host;
  options.twin = false;
  options.on_step = [&bits](const StepReport& report) {
    bits.push_back(std::bit_cast<uint32_t>(report.loss));
    bits.push_back(std::bit_cast<uint32_t>(report.norm));
  };
  const Outcome outcome = run_program(program, options);
  EXPECT_EQ(outcome.verdict, Verdict::pass) << outcome.text;
  return bits;
}

void same_as(const char* what, const Program& base, void (*change)(Flags&)) {
  Program other = base;
  change(other.flags);
  ASSERT_TRUE(validate(other.flags).empty()) << what << ": " << validate(other.flags)[0].text();
  const std::vector<uint32_t> expected = numbers_of(base);
  EXPECT_EQ(expected.size(), 10u);
  EXPECT_EQ(numbers_of(other), expected) << what;
}

Program mxfp8() {
  return small_program("mxfp8",
                       "set grad_reduce_in_fp32 true\nset num_buckets 3\nset cuda_graph_impl full_iteration\n"
                       "set cuda_graph_warmup_steps 1\nset num_microbatches 2\ntrain 5\n");
}

TEST(SameNumbers, Graph) {
  same_as("graph off", mxfp8(), [](Flags& f) { f.cuda_graph_impl = CudaGraphImpl::none; });
}
TEST(SameNumbers, Overlap) {
  same_as("no overlap of the gather", mxfp8(), [](Flags& f) { f.overlap_param_gather = false; });
  same_as("no overlap at all", mxfp8(), [](Flags& f) {
    f.overlap_param_gather = f.overlap_grad_reduce = false;
    f.num_buckets.reset();
  });
}
TEST(SameNumbers, Reuse) {
  same_as("params in a buffer of their own", mxfp8(),
          [](Flags& f) { f.reuse_grad_buf_for_mxfp8_param_ag = false; });
}
TEST(SameNumbers, ParamGather) {
  same_as("weights stored whole and quantized on use", mxfp8(),
          [](Flags& f) { f.reuse_grad_buf_for_mxfp8_param_ag = f.fp8_param_gather = false; });
}
TEST(SameNumbers, Buckets) {
  same_as("one bucket", mxfp8(), [](Flags& f) { f.num_buckets.reset(); });
  same_as("a bucket a param", mxfp8(), [](Flags& f) {
    f.num_buckets.reset();
    f.bucket_size = 1;
  });
}
TEST(SameNumbers, RegistrationOrder) {
  same_as("params registered out of order", mxfp8(),
          [](Flags& f) { f.registration_order = RegistrationOrder::shuffled; });
}
TEST(SameNumbers, AverageInCollectiveWithFp32Grads) {
  same_as("average in the collective", mxfp8(), [](Flags& f) { f.average_in_collective = true; });
}
TEST(SameNumbers, LayersKeptInBf16AmongMxfp8Ones) {
  Program program = mxfp8();
  program.flags.num_layers = 3;
  program.flags.first_last_layers_bf16 = true;
  same_as("a bucket a param", program, [](Flags& f) {
    f.num_buckets.reset();
    f.bucket_size = 1;
  });
  same_as("weights stored whole and quantized on use", program,
          [](Flags& f) { f.reuse_grad_buf_for_mxfp8_param_ag = f.fp8_param_gather = false; });
  program.flags.num_layers = 2;
  same_as("recipe bf16, as no MXFP8 weight is left", program, [](Flags& f) {
    f.fp8_recipe = Recipe::bf16;
    f.first_last_layers_bf16 = f.reuse_grad_buf_for_mxfp8_param_ag = f.fp8_param_gather = false;
  });
}
TEST(SameNumbers, HooksOffInTheFirstIterationAndEvaluation) {
  const std::vector<uint32_t> expected = numbers_of(mxfp8());
  Program loop =
      small_program("mxfp8",
                    "set grad_reduce_in_fp32 true\nset num_buckets 3\nset cuda_graph_impl full_iteration\n"
                    "set cuda_graph_warmup_steps 1\nset num_microbatches 2\nstart_loop\ntrain 2\nevaluate 2\n"
                    "train 2\nend_loop\nstart_loop\ntrain 1\n");
  EXPECT_EQ(numbers_of(loop), expected);
}
TEST(SameNumbers, OtherLearningRateIsSeen) {
  Program other = mxfp8();
  other.flags.lr = 0.002;
  EXPECT_NE(numbers_of(other), numbers_of(mxfp8())) << "the comparison must be able to fail";
}

}  // namespace
}  // namespace gatherfuzz
