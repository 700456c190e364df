#include "impl/training/flags.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "impl/training/flag_text.h"

namespace gatherfuzz {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

Flags flags_of(const Settings& settings) {
  Flags flags;
  for (const auto& [name, value] : settings) EXPECT_EQ(set_flag(flags, name, value), "");
  return flags;
}

// Program format v1 pins these: a changed line is a new format version, a new line with a neutral default is
// not.
TEST(Flags, DefaultsOfV1ArePinned) {
  std::string table;
  for (const FlagInfo& info : flag_table()) {
    table += std::string(info.name) + " " + info.default_text() + " | " + info.expected() + "\n";
  }
  EXPECT_EQ(table,
            "fp8_recipe bf16 | fp32, bf16 or mxfp8\n"
            "fp8_param_gather false | false or true\n"
            "reuse_grad_buf_for_mxfp8_param_ag false | false or true\n"
            "overlap_param_gather false | false or true\n"
            "overlap_grad_reduce false | false or true\n"
            "grad_reduce_in_fp32 false | false or true\n"
            "average_in_collective false | false or true\n"
            "calculate_per_token_loss false | false or true\n"
            "bucket_size unset | unset, or 1 to 268435456\n"
            "num_buckets unset | unset, or 1 to 64\n"
            "cuda_graph_impl none | none, local or full_iteration\n"
            "cuda_graph_scope empty | empty or full_iteration\n"
            "cuda_graph_warmup_steps 3 | 0 to 100\n"
            "num_microbatches 1 | 1 to 16\n"
            "data_parallel_size 1 | 1 to 8\n"
            "clip_grad 1 | 0 to 10000\n"
            "loss_scale unset | unset, or 0.0009765625 to 4294967296\n"
            "check_for_nan_in_grad false | false or true\n"
            "use_distributed_optimizer true | false or true\n"
            "untie_embeddings_and_output_weights true | false or true\n"
            "mx_scale_rounding up | up or floor\n"
            "first_last_layers_bf16 false | false or true\n"
            "num_layers 2 | 1 to 16\n"
            "hidden_size 64 | 16 to 1024\n"
            "ffn_hidden_size 128 | 16 to 4096\n"
            "num_attention_heads 4 | 1 to 64\n"
            "seq_length 32 | 1 to 512\n"
            "vocab_size 128 | 2 to 4096\n"
            "micro_batch_size 1 | 1 to 64\n"
            "registration_order execution | execution or shuffled\n"
            "seed 0 | 0 to 2^64-1\n"
            "lr 0.001 | 0 to 10\n"
            "adam_beta1 0.9 | 0 to 0.9999\n"
            "adam_beta2 0.999 | 0 to 0.9999\n"
            "adam_eps 1e-08 | 1e-15 to 1\n"
            "weight_decay 0 | 0 to 1\n"
            "lr_warmup_steps 0 | 0 to 1000000\n"
            "lr_decay_style constant | constant, linear or cosine\n"
            "lr_decay_steps unset | unset, or 1 to 1000000\n"
            "min_lr 0 | 0 to 10\n"
            "grad_norm_skip_threshold unset | unset, or 1e+06 to 1e+30\n"
            "optimizer_cuda_graph false | false or true\n"
            "schedule fifo | fifo, reverse, random or pct\n"
            "schedule_seed 0 | 0 to 2^64-1\n");
}

TEST(Flags, EveryFlagReadsBackWhatItPrints) {
  size_t changed = 0;
  for (const FlagInfo& info : flag_table()) {
    std::vector<std::string> values(info.choices.begin(), info.choices.end());
    if (info.kind == FlagKind::whole) values = {"1", "17"};
    if (info.kind == FlagKind::real) values = {"0.25", "0.3"};
    if (info.may_be_unset) values.push_back("unset");
    for (const std::string& value : values) {
      Flags flags;
      if (!set_flag(flags, info.name, value).empty()) continue;
      EXPECT_EQ(info.text(flags), value) << info.name;
      Flags again;
      EXPECT_EQ(set_flag(again, info.name, info.text(flags)), "");
      EXPECT_EQ(flags, again) << info.name;
      changed += flags != Flags{};
    }
    EXPECT_EQ(find_flag(info.name), &info);
  }
  EXPECT_GE(changed, flag_table().size()) << "each flag can be changed";
}

TEST(Flags, SeedKeepsAllBits) {
  const Flags flags = flags_of({{"seed", "18446744073709551615"}});
  EXPECT_EQ(flags.seed, ~uint64_t{0});
  EXPECT_EQ(find_flag("seed")->text(flags), "18446744073709551615");
}

TEST(Flags, RangesHoldAtBothEnds) {
  size_t checked = 0;
  for (const FlagInfo& info : flag_table()) {
    if (info.kind != FlagKind::whole || info.most > 1e9) continue;
    const auto least = static_cast<int64_t>(info.least), most = static_cast<int64_t>(info.most);
    for (const auto& [value, accepted] :
         {std::pair{least - 1, false}, {least, true}, {most, true}, {most + 1, false}}) {
      Flags flags;
      EXPECT_EQ(set_flag(flags, info.name, std::to_string(value)).empty(), accepted)
          << info.name << " " << value;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 14u * 4);
}

TEST(Flags, ErrorsSayWhatWasExpectedAndFound) {
  Flags flags;
  EXPECT_EQ(set_flag(flags, "fp8_recipie", "mxfp8"),
            "expected the name of a flag, found 'fp8_recipie'; nearest: fp8_recipe");
  EXPECT_EQ(set_flag(flags, "zzz", "1"), "expected the name of a flag, found 'zzz'");
  EXPECT_EQ(set_flag(flags, "fp8_recipe", "mxfp"),
            "expected fp8_recipe to be fp32, bf16 or mxfp8, found 'mxfp'; nearest: mxfp8");
  EXPECT_EQ(set_flag(flags, "num_layers", "17"),
            "expected num_layers to be 1 to 16 (a whole number), found '17'");
  EXPECT_EQ(set_flag(flags, "lr", "nan"), "expected lr to be 0 to 10, found 'nan'");
  EXPECT_EQ(flags, Flags{});
  for (const char* bad : {"", "-1", "+1", "1.0", "1e1", "0x2", "2 ", "99999999999999999999999"}) {
    EXPECT_NE(set_flag(flags, "num_layers", bad), "") << bad;
  }
  for (const char* bad : {"", "inf", "-inf", "nan", "0x1p3", "1e", "1,5", "1e999", "0.1 ", "-0.1"}) {
    EXPECT_NE(set_flag(flags, "lr", bad), "") << bad;
  }
  for (const char* bad : {"", "1", "True", "on", "unset"}) {
    EXPECT_NE(set_flag(flags, "fp8_param_gather", bad), "") << bad;
  }
  EXPECT_EQ(flags, Flags{});
}

struct RuleCase {
  Settings broken;                             // trips the rule
  std::pair<std::string, std::string> healed;  // with this change the rule holds
};

const Settings kSeedFlags = {{"fp8_recipe", "mxfp8"},
                             {"fp8_param_gather", "true"},
                             {"reuse_grad_buf_for_mxfp8_param_ag", "true"},
                             {"overlap_param_gather", "true"},
                             {"overlap_grad_reduce", "true"},
                             {"cuda_graph_impl", "local"},
                             {"cuda_graph_scope", "full_iteration"},
                             {"data_parallel_size", "2"}};

// One case for each row of flag_rules(), in its order.
const RuleCase kRuleCases[] = {
    {{{"fp8_recipe", "mxfp8"}, {"reuse_grad_buf_for_mxfp8_param_ag", "true"}}, {"fp8_param_gather", "true"}},
    {{{"fp8_param_gather", "true"}, {"reuse_grad_buf_for_mxfp8_param_ag", "true"}}, {"fp8_recipe", "mxfp8"}},
    {{{"fp8_param_gather", "true"}}, {"fp8_recipe", "mxfp8"}},
    {{{"first_last_layers_bf16", "true"}}, {"fp8_recipe", "mxfp8"}},
    {{{"fp8_recipe", "mxfp8"}, {"fp8_param_gather", "true"}, {"use_distributed_optimizer", "false"}},
     {"use_distributed_optimizer", "true"}},
    {{{"overlap_param_gather", "true"},
      {"overlap_grad_reduce", "true"},
      {"use_distributed_optimizer", "false"}},
     {"use_distributed_optimizer", "true"}},
    {{{"overlap_param_gather", "true"}}, {"overlap_grad_reduce", "true"}},
    {{{"use_distributed_optimizer", "false"}}, {"use_distributed_optimizer", "true"}},
    {{{"calculate_per_token_loss", "true"}, {"average_in_collective", "true"}},
     {"average_in_collective", "false"}},
    {{{"bucket_size", "4096"}, {"num_buckets", "2"}}, {"bucket_size", "unset"}},
    {{{"cuda_graph_impl", "local"}}, {"cuda_graph_scope", "full_iteration"}},
    {{{"cuda_graph_impl", "full_iteration"}, {"cuda_graph_scope", "full_iteration"}},
     {"cuda_graph_scope", "empty"}},
    {{{"cuda_graph_impl", "full_iteration"}, {"check_for_nan_in_grad", "true"}}, {"cuda_graph_impl", "none"}},
    {{{"num_attention_heads", "3"}}, {"num_attention_heads", "2"}},
    {{{"fp8_recipe", "mxfp8"}, {"hidden_size", "48"}}, {"hidden_size", "96"}},
    {{{"fp8_recipe", "mxfp8"}, {"ffn_hidden_size", "48"}}, {"fp8_recipe", "bf16"}},
    {{{"fp8_recipe", "mxfp8"}, {"seq_length", "16"}}, {"micro_batch_size", "2"}},
    {{{"num_layers", "16"}, {"hidden_size", "1024"}}, {"num_layers", "2"}},
    {{{"lr_decay_style", "cosine"}}, {"lr_decay_steps", "10"}},
    {{{"lr_decay_steps", "10"}}, {"lr_decay_style", "linear"}},
    {{{"min_lr", "0.0001"}}, {"min_lr", "0"}},
    {{{"lr_decay_style", "linear"}, {"lr_decay_steps", "10"}, {"lr_warmup_steps", "10"}},
     {"lr_warmup_steps", "9"}},
    {{{"lr_decay_style", "linear"}, {"lr_decay_steps", "10"}, {"min_lr", "0.01"}}, {"lr", "0.01"}},
    {{{"lr", "10"}, {"weight_decay", "0.2"}}, {"weight_decay", "0.1"}},
    {{{"optimizer_cuda_graph", "true"}}, {"cuda_graph_impl", "full_iteration"}},
    {{{"optimizer_cuda_graph", "true"}, {"cuda_graph_impl", "full_iteration"}, {"loss_scale", "8"}},
     {"loss_scale", "unset"}},
    {{{"optimizer_cuda_graph", "true"},
      {"cuda_graph_impl", "full_iteration"},
      {"grad_norm_skip_threshold", "1e6"}},
     {"grad_norm_skip_threshold", "unset"}},
};

bool reports(const Flags& flags, const FlagConflict& conflict) {
  const std::vector<FlagConflict> found = validate(flags);
  return std::any_of(found.begin(), found.end(), [&](const FlagConflict& c) {
    return c.reason == conflict.reason && c.names == conflict.names;
  });
}

TEST(FlagRules, EachRuleHasAProgramThatTripsItAndANeighbourThatDoesNot) {
  ASSERT_EQ(std::size(kRuleCases), flag_rules().size());
  for (size_t i = 0; i < std::size(kRuleCases); ++i) {
    const FlagConflict& conflict = flag_rules()[i].conflict;
    Flags flags = flags_of(kRuleCases[i].broken);
    EXPECT_TRUE(reports(flags, conflict)) << conflict.text();
    EXPECT_EQ(set_flag(flags, kRuleCases[i].healed.first, kRuleCases[i].healed.second), "");
    EXPECT_FALSE(reports(flags, conflict)) << conflict.text();
    EXPECT_TRUE(validate(flags).empty()) << "the neighbour is accepted: " << validate(flags)[0].text();
  }
}

TEST(FlagRules, RulesNameExistingFlagsAndDifferentReasons) {
  std::set<std::string_view> reasons;
  for (const FlagRule& rule : flag_rules()) {
    EXPECT_TRUE(reasons.insert(rule.conflict.reason).second) << rule.conflict.reason;
    EXPECT_FALSE(rule.conflict.names.empty());
    for (std::string_view name : rule.conflict.names) EXPECT_NE(find_flag(name), nullptr) << name;
  }
}

TEST(FlagRules, TheDefectsFlagsAndItsNeighboursAreAccepted) {
  EXPECT_TRUE(validate(Flags{}).empty());
  EXPECT_TRUE(validate(flags_of(kSeedFlags)).empty());
  Settings without_reuse = kSeedFlags;
  without_reuse[2].second = "false";
  EXPECT_TRUE(validate(flags_of(without_reuse)).empty()) << "a separate bf16 param buffer is allowed";
  EXPECT_TRUE(validate(flags_of({{"cuda_graph_scope", "full_iteration"}})).empty())
      << "no effect without an impl";
  EXPECT_EQ(flags_of(kSeedFlags).cuda_graph_impl, CudaGraphImpl::local);
  EXPECT_EQ(validate(flags_of({{"num_attention_heads", "3"}}))[0].text(),
            "hidden_size, num_attention_heads: hidden_size must be divisible by the number of heads");
}

TEST(Flags, Predicates) {
  EXPECT_FALSE(captures_full_iteration(Flags{}));
  EXPECT_FALSE(captures_full_iteration(flags_of({{"cuda_graph_scope", "full_iteration"}})));
  EXPECT_TRUE(captures_full_iteration(flags_of({{"cuda_graph_impl", "full_iteration"}})));
  EXPECT_TRUE(captures_full_iteration(flags_of(kSeedFlags)));
  EXPECT_TRUE(model_is_mxfp8_gather(flags_of(kSeedFlags)));
  EXPECT_FALSE(model_is_mxfp8_gather(flags_of({{"fp8_recipe", "mxfp8"}})));
  Settings all_bf16 = kSeedFlags;
  all_bf16.push_back({"first_last_layers_bf16", "true"});
  EXPECT_FALSE(model_is_mxfp8_gather(flags_of(all_bf16))) << "both layers are bf16";
  all_bf16.push_back({"num_layers", "3"});
  EXPECT_TRUE(model_is_mxfp8_gather(flags_of(all_bf16)));
  EXPECT_FALSE(reduces_in_fp32(Flags{}));
  EXPECT_TRUE(reduces_in_fp32(flags_of({{"fp8_recipe", "fp32"}})));
  EXPECT_TRUE(reduces_in_fp32(flags_of({{"grad_reduce_in_fp32", "true"}})));
}

TEST(FlagText, NumbersAndNames) {
  EXPECT_EQ(parse_whole("007"), 7u);
  EXPECT_EQ(parse_whole("18446744073709551616"), std::nullopt);
  EXPECT_EQ(print_real(*parse_real("-0")), "0");
  EXPECT_EQ(print_real(*parse_real("1e-8")), "1e-08");
  EXPECT_EQ(in_quotes(std::string("a\0\xff\n", 4)), "'a...'");
  EXPECT_EQ(in_quotes(std::string(50, 'x')), "'" + std::string(40, 'x') + "...'");
  EXPECT_EQ(nearest_name("overlap_param_gathr", flag_names()), "overlap_param_gather");
  EXPECT_EQ(nearest_name(std::string(1000000, 'x'), flag_names()), "");
  EXPECT_EQ(nearest_name("", flag_names()), "");
}

}  // namespace
}  // namespace gatherfuzz
