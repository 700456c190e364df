#include "properties/program.h"

#include <gtest/gtest.h>

namespace gatherfuzz {
namespace {

const char* const kSeed =
    "gatherfuzz program v1\n"
    "# The first main-loop iteration, hooks off, replays a graph captured during warmup.\n"
    "set fp8_recipe mxfp8\n"
    "set fp8_param_gather true\n"
    "set reuse_grad_buf_for_mxfp8_param_ag true\n"
    "set overlap_param_gather true\n"
    "set overlap_grad_reduce true\n"
    "set cuda_graph_impl local\n"
    "set cuda_graph_scope full_iteration\n"
    "set cuda_graph_warmup_steps 2\n"
    "set data_parallel_size 2\n"
    "warmup 3  # eager, eager, capture + replay\n"
    "start_loop\n"
    "train 2\n"
    "expect pass\n";

std::string with_header(const std::string& lines) {
  return "gatherfuzz program v1\n" + lines;
}

Program parsed(const std::string& text) {
  const ParseResult result = parse_program(text);
  EXPECT_TRUE(result.ok()) << text << (result.errors.empty() ? "" : result.errors[0].message);
  return result.program.value_or(Program{});
}

TEST(Program, ReadsTheSeedProgram) {
  const Program program = parsed(kSeed);
  EXPECT_EQ(program.flags.fp8_recipe, Recipe::mxfp8);
  EXPECT_EQ(program.flags.cuda_graph_warmup_steps, 2);
  ASSERT_EQ(program.actions.size(), 3u);
  EXPECT_EQ(program.actions[0].kind, ActionKind::warmup);
  EXPECT_EQ(program.actions[0].count, 3);
  EXPECT_EQ(program.actions[0].comments.behind, " eager, eager, capture + replay");
  EXPECT_FALSE(program.actions[1].hooks_on);
  EXPECT_EQ(training_steps(program), 5);
  ASSERT_TRUE(program.expect);
  EXPECT_EQ(program.expect->verdict, Verdict::pass);
  EXPECT_EQ(program.top_comments.size(), 1u);
  EXPECT_EQ(print_program(program), kSeed);
  EXPECT_EQ(refusal_before_run(program), std::nullopt);
}

TEST(Program, ReadsEveryKindOfLine) {
  const Program program =
      parsed(with_header("set schedule pct\n"
                         "delay comm by=40 op=all_gather\n"
                         "delay compute by=1\n"
                         "fault drop op=copy_main_params_to_param_buffer iteration=4+ rank=1\n"
                         "fault insert op=zero_grad_buffer before=all_gather bucket=2 at=execute\n"
                         "fault coefficient op=scale_grads by=0.5 iteration=2\n"
                         "fault previous-value op=quantize param=layers.0.qkv operand=source\n"
                         "fault drop-wait op=quantize\n"
                         "start_loop hooks=on\n"
                         "inject_nonfinite rank=1 where=shard\n"
                         "set_microbatches 4\n"
                         "skip_iteration\n"
                         "evaluate 2\n"
                         "reset_graph\n"
                         "end_loop keep_graph=false\n"
                         "expect fail: zeroed-weights\n"));
  EXPECT_EQ(program.flags.schedule, Schedule::pct);
  EXPECT_EQ(program.delays[0], (Delay{StreamName::comm, 40, "all_gather", {}}));
  EXPECT_EQ(program.delays[1], (Delay{StreamName::compute, 1, "", {}}));
  EXPECT_EQ(program.faults[0].iteration, (IterationRange{4, true}));
  EXPECT_EQ(program.faults[0].rank, 1);
  EXPECT_TRUE(program.faults[0].iteration->contains(9));
  EXPECT_FALSE(program.faults[0].iteration->contains(3));
  EXPECT_EQ(program.faults[1].kind, FaultKind::insert);
  EXPECT_EQ(program.faults[1].before, "all_gather");
  EXPECT_EQ(program.faults[1].bucket, 2);
  EXPECT_EQ(program.faults[2].by, 0.5);
  EXPECT_FALSE(program.faults[2].iteration->contains(3));
  EXPECT_EQ(program.faults[3].operand, "source");
  EXPECT_EQ(program.faults[3].param, "layers.0.qkv");
  EXPECT_EQ(program.faults[4].kind, FaultKind::drop_wait);
  EXPECT_TRUE(program.actions[0].hooks_on);
  EXPECT_EQ(program.actions[1].where, InjectionPlace::shard);
  EXPECT_EQ(program.actions[1].rank, 1);
  EXPECT_EQ(program.actions[2].count, 4);
  EXPECT_FALSE(program.actions[6].keep_graph);
  EXPECT_EQ(program.expect->failure, FailureClass::zeroed_weights);
  EXPECT_EQ(print_fault(program.faults[1]), "fault insert op=zero_grad_buffer bucket=2 before=all_gather");
}

TEST(Program, ReadsEveryExpectation) {
  size_t read = 0;
  const auto reads = [&read](const std::string& text) {
    const Program program = parsed(with_header("expect " + text + "\n"));
    EXPECT_EQ(print_program(program), with_header("expect " + text + "\n"));
    read += program.expect.has_value();
  };
  for (const char* verdict : {"pass", "refused", "vacuous"}) reads(verdict);
  for (std::string_view reason : kRefusalReasonNames) reads("refused: " + std::string(reason));
  for (std::string_view name : kFailureClassNames) reads("fail: " + std::string(name));
  EXPECT_EQ(read, 3u + 6 + 23);
}

TEST(Program, PrintOrdersFlagsAndDropsDefaults) {
  const std::string text = with_header(
      "set  data_parallel_size   02\n"
      "\n"
      "\tset fp8_recipe fp32\t\r\n"
      "set num_layers 2\n"
      "set lr 1e-2\n"
      "start_loop   hooks=off\n"
      "train 007");
  EXPECT_EQ(print_program(parsed(text)),
            with_header("set fp8_recipe fp32\nset data_parallel_size 2\nset lr 0.01\nstart_loop\ntrain 7\n"));
}

TEST(Program, CommentsStayWithTheirLines) {
  const std::string text =
      "gatherfuzz program v1 # header\n"
      "#top\n"
      "set data_parallel_size 2 # two\n"
      "# about the recipe\n"
      "set fp8_recipe fp32# no blank\n"
      "# about a default\n"
      "set num_layers 2 # dropped\n"
      "#\n"
      "train 1\n"
      "# end   \n";
  const std::string canonical =
      "gatherfuzz program v1  # header\n"
      "#top\n"
      "# about a default\n"
      "# dropped\n"
      "# about the recipe\n"
      "set fp8_recipe fp32  # no blank\n"
      "set data_parallel_size 2  # two\n"
      "#\n"
      "train 1\n"
      "# end\n";
  EXPECT_EQ(print_program(parsed(text)), canonical);
  EXPECT_EQ(print_program(parsed(canonical)), canonical);
  EXPECT_EQ(parsed(text), parsed(canonical));
}

TEST(Program, CommentsOfAnEmptyProgram) {
  EXPECT_EQ(print_program(parsed("gatherfuzz program v1\n# a\n\n# b")), with_header("# a\n# b\n"));
}

TEST(Program, HashIgnoresCommentsAndSpelling) {
  const uint64_t hash = program_hash(parsed(kSeed));
  EXPECT_EQ(hash, program_hash(without_comments(parsed(kSeed))));
  EXPECT_EQ(program_hash(parsed(with_header("train 1 # a\n"))),
            program_hash(parsed(with_header("#b\ntrain 01"))));
  EXPECT_NE(program_hash(parsed(with_header("train 1\n"))), program_hash(parsed(with_header("train 2\n"))));
  EXPECT_NE(program_hash(parsed(with_header(""))), program_hash(parsed(with_header("set seed 1\n"))));
  EXPECT_EQ(program_hash(Program{}), 2606952831576181376u) << "pinned: names of corpus files depend on it";
}

std::string refusal_text(const std::string& lines) {
  const auto refusal = refusal_before_run(parsed(with_header(lines)));
  return refusal ? std::string(name_of(refusal->reason)) + " | " + refusal->text : "";
}

TEST(RefusalBeforeRun, NamesReasonAndPlace) {
  EXPECT_EQ(refusal_text("set overlap_param_gather true\ntrain 1\n"),
            "flags | overlap_param_gather, overlap_grad_reduce: overlapping the gather uses the buckets that "
            "overlapping the reduction builds");
  EXPECT_EQ(refusal_text("train 1\nend_loop\n"),
            "action-order | action 2, end_loop: no loop has been started");
  EXPECT_EQ(refusal_text("start_loop\nend_loop\nend_loop\n"),
            "action-order | action 3, end_loop: no loop has been started");
  EXPECT_EQ(refusal_text("start_loop\nstart_loop hooks=on\n"),
            "action-order | action 2, start_loop hooks=on: a loop has been started already");
  EXPECT_EQ(refusal_text("start_loop\nend_loop\nstart_loop\ntrain 1\n"), "");
  EXPECT_EQ(refusal_text("warmup 2\nrerun_forward_backward\n"),
            "action-order | action 2, rerun_forward_backward: no batch came before it");
  EXPECT_EQ(refusal_text("skip_iteration\nrerun_forward_backward\n"), "");
  EXPECT_EQ(refusal_text("restore_grad_buffers\n"),
            "action-order | action 1, restore_grad_buffers: the grad buffers are not offloaded");
  EXPECT_EQ(refusal_text("offload_grad_buffers\nset_microbatches 2\nevaluate 1\n"),
            "action-order | action 3, evaluate 1: the grad buffers are offloaded");
  EXPECT_EQ(refusal_text("offload_grad_buffers\nskip_iteration\nrestore_grad_buffers\ntrain 1\n"), "");
}

TEST(RefusalBeforeRun, InjectionsNeedSomebodyWhoLooks) {
  const std::string unseen =
      "flags | action 1, inject_nonfinite rank=0 where=shard: needs loss_scale or grad_norm_skip_threshold, "
      "or with "
      "where=grad check_for_nan_in_grad";
  EXPECT_EQ(refusal_text("inject_nonfinite rank=0 where=shard\n"), unseen);
  EXPECT_EQ(refusal_text("set check_for_nan_in_grad true\ninject_nonfinite rank=0 where=shard\n"), unseen);
  EXPECT_NE(refusal_text("inject_nonfinite rank=0\n"), "");
  EXPECT_EQ(refusal_text("set check_for_nan_in_grad true\ninject_nonfinite rank=0\n"), "");
  EXPECT_EQ(refusal_text("set loss_scale 1024\ninject_nonfinite rank=0 where=shard\n"), "");
  EXPECT_EQ(refusal_text("set grad_norm_skip_threshold 1e+06\ninject_nonfinite rank=0 where=shard\n"), "");
  EXPECT_EQ(refusal_text("set grad_norm_skip_threshold 1e+06\ninject_nonfinite rank=0\n"), "");
  EXPECT_EQ(refusal_text("set loss_scale 1024\ninject_nonfinite rank=1\n"),
            "flags | action 1, inject_nonfinite rank=1: rank 1 needs a data_parallel_size of more than 1");
  EXPECT_EQ(refusal_text("set loss_scale 1024\nset data_parallel_size 2\ninject_nonfinite rank=1\n"), "");
  EXPECT_EQ(refusal_text("fault drop op=quantize rank=1\n"),
            "flags | fault drop op=quantize rank=1: the rank needs a data_parallel_size of more than 1");
}

TEST(RefusalBeforeRun, TooManySteps) {
  Program program = parsed(with_header("train 1000\n"));
  EXPECT_EQ(refusal_before_run(program), std::nullopt);
  program.actions.push_back(program.actions[0]);
  EXPECT_EQ(refusal_before_run(program)->reason, RefusalReason::limit);
}

}  // namespace
}  // namespace gatherfuzz
