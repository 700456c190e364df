// Loss and every gradient of the whole model equal the reference's, bit for bit, in every recipe.
#include "impl/model/model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "impl/model/model_bench_for_tests.h"
#include "reference/model.h"

namespace gatherfuzz {
namespace {

struct Case {
  const char* name;
  ModelConfig config;
  DType grad_dtype;
  bool coarse;
};

ModelConfig shaped(int layers, int hidden, int ffn, int heads, int seq, int vocab, int batch) {
  ModelConfig config;
  config.num_layers = layers;
  config.hidden_size = hidden;
  config.ffn_hidden_size = ffn;
  config.num_attention_heads = heads;
  config.seq_length = seq;
  config.vocab_size = vocab;
  config.micro_batch_size = batch;
  config.max_microbatches = 2;
  return config;
}

ModelConfig with(ModelConfig config, bool mx, bool mx_params, DType activation,
                 ScaleRounding rounding = ScaleRounding::up) {
  config.mx = mx;
  config.mx_params = mx_params;
  config.activation = activation;
  config.rounding = rounding;
  return config;
}

const ModelConfig kSmall = shaped(2, 32, 32, 2, 32, 32, 1);
const ModelConfig kOdd = shaped(3, 15, 11, 3, 7, 13, 2);
const ModelConfig kWide = shaped(1, 64, 96, 4, 16, 50, 2);
const ModelConfig kBf16Ends = [] {
  ModelConfig config = shaped(3, 32, 64, 2, 32, 32, 1);
  config.first_last_layers_bf16 = true;
  return config;
}();

ModelConfig tied(ModelConfig config) {
  config.tied_embeddings = true;
  return config;
}

const Case kCases[] = {
    {"tied_fp32", tied(with(kOdd, false, false, DType::f32)), DType::f32, false},
    {"tied_bf16_coarse", tied(with(kWide, false, false, DType::bf16)), DType::bf16, true},
    {"tied_mxfp8", tied(with(kSmall, true, true, DType::bf16)), DType::bf16, false},
    {"fp32", with(kSmall, false, false, DType::f32), DType::f32, false},
    {"fp32_odd_coarse", with(kOdd, false, false, DType::f32), DType::bf16, true},
    {"bf16_odd", with(kOdd, false, false, DType::bf16), DType::f32, false},
    {"bf16_coarse", with(kWide, false, false, DType::bf16), DType::bf16, true},
    {"mxfp8", with(kSmall, true, true, DType::bf16), DType::f32, false},
    {"mxfp8_coarse", with(kWide, true, true, DType::bf16), DType::bf16, true},
    {"mxfp8_floor", with(kWide, true, true, DType::bf16, ScaleRounding::floor), DType::f32, false},
    {"mxfp8_quantized_on_use", with(kSmall, true, false, DType::bf16), DType::f32, false},
    {"mxfp8_quantized_on_use_coarse", with(kWide, true, false, DType::bf16, ScaleRounding::floor),
     DType::bf16, true},
    {"mxfp8_between_bf16", with(kBf16Ends, true, true, DType::bf16), DType::f32, false},
    {"mxfp8_between_bf16_quantized_on_use_coarse", with(kBf16Ends, true, false, DType::bf16), DType::bf16,
     true},
};

reference::Shape shape_of(const ModelConfig& c) {
  return {c.num_layers, c.hidden_size,      c.ffn_hidden_size,        c.num_attention_heads, c.seq_length,
          c.vocab_size, c.micro_batch_size, c.first_last_layers_bf16, c.tied_embeddings};
}

reference::Model reference_of(const ModelConfig& c) {
  const auto precision = c.mx                         ? reference::Precision::mxfp8
                         : c.activation == DType::f32 ? reference::Precision::fp32
                                                      : reference::Precision::bf16;
  const auto rounding =
      c.rounding == ScaleRounding::up ? reference::ScaleRounding::up : reference::ScaleRounding::floor;
  return reference::Model(shape_of(c), precision, rounding);
}

std::size_t differing(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return a.size() + b.size();
  std::size_t n = 0;
  for (std::size_t i = 0; i < a.size(); ++i) n += std::memcmp(&a[i], &b[i], sizeof(float)) != 0 ? 1 : 0;
  return n;
}

class ModelAgainstReference : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Recipes, ModelAgainstReference, testing::ValuesIn(kCases),
                         [](const auto& test) { return test.param.name; });

// Two microbatches and an evaluation between them: gradients add up, rounded to main_grad's dtype each time.
TEST_P(ModelAgainstReference, LossAndGradients) {
  const auto& [name, config, grad_dtype, coarse] = GetParam();
  ModelBench bench(config, MemoryKind::host, grad_dtype);
  Passes passes(bench.model(), coarse);
  const auto weights = seeded_weights(config, 7);
  bench.set_weights(weights);
  const reference::Model reference = reference_of(config);
  const auto prepared = reference.prepare(weights);
  const float coefficient = 1024.0f / 3.0f;

  std::vector<std::vector<float>> expected;
  for (const ParamInfo& param : model_params(config))
    expected.emplace_back(static_cast<std::size_t>(param.size()));
  for (const int slot : {0, bench.model().evaluation_slot(), 1}) {
    const auto seed = static_cast<uint32_t>(slot);
    const std::vector<int32_t> tokens = seeded_tokens(config, 100 + seed);
    const std::vector<int32_t> targets = seeded_tokens(config, 200 + seed);
    bench.set_batch(slot, tokens, targets);
    if (slot == bench.model().evaluation_slot()) {
      bench.forward(passes, slot);
      EXPECT_EQ(bench.loss(slot), reference.forward(prepared, tokens, targets));
      continue;
    }
    bench.forward_backward(passes, slot, coefficient);
    const auto result = reference.forward_backward(prepared, tokens, targets, coefficient);
    EXPECT_EQ(bench.loss(slot), result.loss);
    EXPECT_GT(result.loss, 0.5f);
    for (std::size_t p = 0; p < expected.size(); ++p)
      for (const std::vector<float>* summand : result.summands(p))
        for (std::size_t i = 0; i < expected[p].size(); ++i) {
          const float sum = expected[p][i] + (*summand)[i];
          expected[p][i] = grad_dtype == DType::bf16 ? to_float(to_bf16(sum)) : sum;
        }
  }
  std::size_t nonzero = 0;
  const std::vector<ParamInfo> infos = model_params(config);
  for (std::size_t p = 0; p < expected.size(); ++p) {
    EXPECT_EQ(differing(bench.gradient(p), expected[p]), 0u) << infos[p].name << " of " << expected[p].size();
    for (const float value : expected[p]) nonzero += value != 0.0f ? 1 : 0;
  }
  EXPECT_GT(nonzero, 1000u);
}

TEST(Model, ParametersAreTheReferences) {
  for (const ModelConfig& config : {shaped(2, 32, 64, 2, 32, 48, 1), kBf16Ends, tied(kSmall)}) {
    const auto theirs = reference::param_shapes(shape_of(config));
    const auto ours = model_params(config);
    ASSERT_EQ(ours.size(), theirs.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      EXPECT_EQ(ours[i].name, theirs[i].name);
      EXPECT_EQ(ours[i].rows, theirs[i].rows);
      EXPECT_EQ(ours[i].cols, theirs[i].cols);
      EXPECT_EQ(ours[i].mxfp8, theirs[i].mx) << ours[i].name;
    }
  }
}

TEST(Model, TheFirstAndTheLastLayerMayStayInBf16) {
  ModelConfig config = kBf16Ends;
  for (const int layers : {1, 2, 3, 5}) {
    config.num_layers = layers;
    std::vector<std::string> mxfp8;
    for (const ParamInfo& param : model_params(config))
      if (param.mxfp8) mxfp8.push_back(param.name);
    ASSERT_EQ(mxfp8.size(), layers > 2 ? static_cast<std::size_t>(layers - 2) * 4 : 0u);
    if (layers <= 2) continue;
    EXPECT_EQ(mxfp8.front(), "layers.1.qkv");
    EXPECT_EQ(mxfp8.back(), "layers." + std::to_string(layers - 2) + ".fc2");
  }
}

TEST(Model, EveryParameterBelongsToOneModule) {
  ModelBench bench(kSmall, MemoryKind::symbolic);
  int next = 0;
  for (int m = 0; m < bench.model().modules(); ++m)
    for (const int param : bench.model().params_of(m)) EXPECT_EQ(param, next++);
  EXPECT_EQ(next, static_cast<int>(model_params(kSmall).size()));
}

TEST(Model, ATiedWeightBelongsToBothItsModules) {
  ModelBench bench(tied(kSmall), MemoryKind::symbolic);
  EXPECT_EQ(bench.model().params_of(0), std::vector<int>{kEmbeddingParam});
  EXPECT_EQ(bench.model().params_of(bench.model().modules() - 1),
            (std::vector<int>{kEmbeddingParam, final_norm_param(kSmall)}));
}

TEST(Model, AnInjectedInfinityReachesTheGradients) {
  const ModelConfig config = with(kSmall, true, true, DType::bf16);
  ModelBench bench(config, MemoryKind::host);
  Passes passes(bench.model(), true);
  bench.set_weights(seeded_weights(config, 7));
  bench.set_batch(0, seeded_tokens(config, 1), seeded_tokens(config, 2));
  EXPECT_EQ(*bench.memory().in<float>(bench.model().injection()), 0.0f);
  *bench.memory().out<float>(bench.model().injection()) = std::numeric_limits<float>::infinity();
  bench.forward_backward(passes, 0, 1.0f);
  EXPECT_TRUE(std::isfinite(bench.loss(0)));
  for (const int param : {kEmbeddingParam, final_norm_param(config), output_param(config)}) {
    std::size_t nonfinite = 0;
    for (const float value : bench.gradient(static_cast<std::size_t>(param)))
      nonfinite += std::isfinite(value) ? 0 : 1;
    EXPECT_GT(nonfinite, 0u) << param;
  }
}

TEST(Model, RefusesShapesItCannotCompute) {
  const auto refused = [](ModelConfig config) {
    try {
      check_config(config);
    } catch (const std::invalid_argument&) {
      return true;
    }
    return false;
  };
  EXPECT_FALSE(refused(with(kSmall, true, true, DType::bf16)));
  EXPECT_FALSE(refused(with(kOdd, false, false, DType::bf16)));
  EXPECT_TRUE(refused(with(kOdd, true, true, DType::bf16)));
  EXPECT_TRUE(refused(with(kSmall, true, true, DType::f32)));
  EXPECT_TRUE(refused(with(kSmall, false, false, DType::e4m3)));
  EXPECT_TRUE(refused(shaped(2, 32, 32, 3, 32, 32, 1)));
}

}  // namespace
}  // namespace gatherfuzz
