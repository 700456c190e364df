#include "impl/training/checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "impl/checkpoint/manifest.h"
#include "impl/checkpoint/safetensors.h"
#include "impl/training/assembly.h"

namespace gatherfuzz {
namespace {

namespace fs = std::filesystem;

Flags tiny_flags(Recipe recipe = Recipe::bf16) {
  Flags flags;
  flags.fp8_recipe = recipe;
  flags.num_layers = 1;
  flags.hidden_size = flags.ffn_hidden_size = 16;
  flags.num_attention_heads = 1;
  flags.vocab_size = 2;
  flags.lr = 0.25;
  return flags;
}

Checkpoint example(const Flags& flags) {
  Checkpoint checkpoint{flags, {}};
  checkpoint.state.step = 3;
  checkpoint.state.batch = 5;
  checkpoint.state.evaluations = 7;
  checkpoint.state.microbatches = 2;
  float value = 0.0f;
  for (const ParamInfo& info : model_params(model_config(flags))) {
    ParamState& param = checkpoint.state.params.emplace_back();
    for (auto* values : {&param.main, &param.exp_avg, &param.exp_avg_sq})
      for (int i = 0; i < info.size(); ++i) values->push_back(std::sin(value += 0.7f));
  }
  return checkpoint;
}

void expect_refused(const CheckpointFiles& files, Damage damage, const std::string& text) {
  const auto decoded = decode_checkpoint(files);
  ASSERT_EQ(value_of(decoded), nullptr);
  EXPECT_EQ(name_of(error_of(decoded).damage), name_of(damage)) << error_of(decoded).text;
  EXPECT_NE(error_of(decoded).text.find(text), std::string::npos) << error_of(decoded).text;
}

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Files whose sums are right, whatever is in them.
CheckpointFiles summed(CheckpointFiles files) {
  Manifest manifest = std::get<Manifest>(parse_manifest(files.manifest));
  manifest.files[std::string(kModelFile)] = sum_of(bytes_of(files.model));
  manifest.files[std::string(kOptimizerFile)] = sum_of(bytes_of(files.optimizer));
  files.manifest = write_manifest(manifest);
  return files;
}
template <class Change>
CheckpointFiles with_manifest(CheckpointFiles files, Change&& change) {
  Manifest manifest = std::get<Manifest>(parse_manifest(files.manifest));
  change(manifest);
  files.manifest = write_manifest(manifest);
  return files;
}

TEST(Checkpoint, EveryRecipeComesBack) {
  for (const Recipe recipe : {Recipe::fp32, Recipe::bf16}) {
    const Checkpoint saved = example(tiny_flags(recipe));
    const auto decoded = decode_checkpoint(encode_checkpoint(saved));
    ASSERT_NE(value_of(decoded), nullptr) << error_of(decoded).text;
    EXPECT_EQ(value_of(decoded)->flags, saved.flags);
    EXPECT_EQ(value_of(decoded)->state, saved.state);
  }
}

TEST(Checkpoint, WeightsHaveTheNamesAndShapesOfPyTorch) {
  const CheckpointFiles files = encode_checkpoint(example(tiny_flags()));
  const auto model = parse_safetensors(bytes_of(files.model));
  ASSERT_NE(value_of(model), nullptr);
  std::vector<std::string> found;
  for (const Tensor& t : *value_of(model)) found.push_back(t.name + " " + shape_text(t.type, t.shape));
  const std::vector<std::string> expected = {"model.embed_tokens.weight BF16 [2, 16]",
                                             "model.layers.0.input_layernorm.weight BF16 [16]",
                                             "model.layers.0.self_attn.qkv_proj.weight BF16 [48, 16]",
                                             "model.layers.0.self_attn.o_proj.weight BF16 [16, 16]",
                                             "model.layers.0.post_attention_layernorm.weight BF16 [16]",
                                             "model.layers.0.mlp.gate_up_proj.weight BF16 [32, 16]",
                                             "model.layers.0.mlp.down_proj.weight BF16 [16, 16]",
                                             "model.norm.weight BF16 [16]",
                                             "lm_head.weight BF16 [2, 16]"};
  EXPECT_EQ(found, expected);
}

TEST(Checkpoint, EveryTruncationIsRefused) {
  const CheckpointFiles whole = encode_checkpoint(example(tiny_flags()));
  for (std::string CheckpointFiles::*file :
       {&CheckpointFiles::manifest, &CheckpointFiles::model, &CheckpointFiles::optimizer}) {
    CheckpointFiles cut = whole;
    while (!(cut.*file).empty()) {
      (cut.*file).pop_back();
      ASSERT_EQ(value_of(decode_checkpoint(cut)), nullptr) << (cut.*file).size();
    }
  }
}

// Of the largest file one bit a byte, which is enough to see that its sum is looked at.
TEST(Checkpoint, EveryFlippedBitIsRefused) {
  CheckpointFiles files = encode_checkpoint(example(tiny_flags()));
  for (std::string* file : {&files.manifest, &files.model, &files.optimizer}) {
    for (std::size_t i = 0; i < file->size(); ++i) {
      const bool one = file == &files.optimizer;
      for (int bit = one ? static_cast<int>(i % 8) : 0; bit < 8; bit += one ? 8 : 1) {
        (*file)[i] = static_cast<char>((*file)[i] ^ (1 << bit));
        ASSERT_EQ(value_of(decode_checkpoint(files)), nullptr) << "byte " << i << ", bit " << bit;
        (*file)[i] = static_cast<char>((*file)[i] ^ (1 << bit));
      }
    }
  }
  EXPECT_NE(value_of(decode_checkpoint(files)), nullptr);
}

TEST(Checkpoint, DamageIsNamed) {
  const CheckpointFiles whole = encode_checkpoint(example(tiny_flags()));
  CheckpointFiles files = whole;
  files.model.back() = static_cast<char>(files.model.back() ^ 1);
  expect_refused(files, Damage::checksum, "model.safetensors: checksum: expected CRC32 ");
  files = whole;
  files.optimizer.pop_back();
  expect_refused(files, Damage::truncated, "optimizer.safetensors: truncated: expected ");
  files = whole;
  files.optimizer += "x";
  expect_refused(files, Damage::size, "optimizer.safetensors: size: expected ");
  files = whole;
  files.manifest.insert(1, " ");
  expect_refused(files, Damage::header, "manifest.json: header: ");
  files = whole;
  files.manifest.replace(files.manifest.find("\"version\": 1"), 12, "\"version\": 2");
  expect_refused(files, Damage::version, "expected version 1, found \"2\"");
}

TEST(Checkpoint, AManifestOfAnotherModelIsRefused) {
  const CheckpointFiles whole = encode_checkpoint(example(tiny_flags()));
  const auto set = [&](const char* name, const char* value) {
    return with_manifest(whole, [&](Manifest& m) { m.flags[name] = value; });
  };
  expect_refused(set("vocab_size", "3"), Damage::shape,
                 "main_param.model.embed_tokens.weight, F32 [3, 16], found F32 [2, 16]");
  expect_refused(set("num_layers", "2"), Damage::missing_tensor,
                 "main_param.model.layers.1.input_layernorm.weight");
  expect_refused(set("fp8_recipe", "fp32"), Damage::dtype,
                 "model.embed_tokens.weight, F32 [2, 16], found BF16");
  expect_refused(set("vocab_sise", "3"), Damage::header, "vocab_size");
  expect_refused(set("num_attention_heads", "3"), Damage::header, "num_attention_heads");
  expect_refused(with_manifest(whole, [](Manifest& m) { m.step = 4; }), Damage::mismatch, "expected step 4");
  expect_refused(with_manifest(whole, [](Manifest& m) { m.batch = uint64_t{1} << 40; }), Damage::header,
                 "1099511627776");
  expect_refused(with_manifest(whole, [](Manifest& m) { m.files.clear(); }), Damage::header,
                 "model.safetensors among files");
}

TEST(Checkpoint, TensorsOfAnotherModelAreRefused) {
  const Checkpoint saved = example(tiny_flags());
  const CheckpointFiles whole = encode_checkpoint(saved);
  CheckpointFiles files = whole;
  std::vector<Tensor> tensors = std::get<std::vector<Tensor>>(parse_safetensors(bytes_of(whole.model)));
  tensors.push_back({"another", TensorType::i64, {}, tensors.front().data.first(8)});
  files.model = write_safetensors(tensors);
  expect_refused(summed(files), Damage::extra_tensor, "found also another");
  Checkpoint other = saved;
  other.state.params.back().main.back() += 1.0f;
  files = whole;
  files.model = encode_checkpoint(other).model;
  expect_refused(summed(files), Damage::mismatch, "expected lm_head.weight to be its main param");
}

TEST(Checkpoint, FoldersAreReadAndTheModelIsCompared) {
  char name[] = "/tmp/gatherfuzz-checkpoint-XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const Checkpoint saved = example(tiny_flags());
  const std::string path = save_checkpoint(name, saved);
  for (const std::string& from : {path, std::string(name)}) {
    const auto loaded = load_checkpoint(from);
    ASSERT_NE(value_of(loaded), nullptr) << error_of(loaded).text;
    EXPECT_EQ(value_of(loaded)->state, saved.state);
  }
  fs::remove(path + "/model.safetensors");
  const auto loaded = load_checkpoint(name);
  ASSERT_EQ(value_of(loaded), nullptr);
  EXPECT_EQ(error_of(loaded).text, path + "/model.safetensors: unreadable: No such file or directory");
  fs::remove_all(name);
  EXPECT_EQ(error_of(load_checkpoint(name)).damage, Damage::unreadable);

  Flags wanted = saved.flags;
  wanted.lr = 1.0;
  wanted.data_parallel_size = 4;
  EXPECT_NE(value_of(check_same_model(saved.flags, wanted)), nullptr);
  wanted.vocab_size = 4;
  EXPECT_EQ(error_of(check_same_model(saved.flags, wanted)).text,
            "expected a checkpoint with vocab_size 4, found 2");
}

// What version 1 of the format has once written stays readable, and is still written like this.
TEST(Checkpoint, TheStoredOneIsReadAndWrittenAgainAsItIs) {
  const std::string folder = GATHERFUZZ_SOURCE_DIR "/corpus/checkpoints";
  const auto loaded = load_checkpoint(folder);
  ASSERT_NE(value_of(loaded), nullptr) << error_of(loaded).text;
  EXPECT_EQ(value_of(loaded)->state.step, 3);
  EXPECT_EQ(value_of(loaded)->state.params.front().main.front(), 0.75f);
  const CheckpointFiles written = encode_checkpoint(*value_of(loaded));
  const auto stored = [&](std::string_view name) {
    std::ifstream file(folder + "/" + std::string(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_EQ(written.manifest, stored(kManifestFile));
  EXPECT_EQ(written.model, stored(kModelFile));
  EXPECT_EQ(written.optimizer, stored(kOptimizerFile));
}

}  // namespace
}  // namespace gatherfuzz
