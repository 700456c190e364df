#include "impl/training/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include "impl/checkpoint/folder.h"
#include "impl/checkpoint/manifest.h"
#include "impl/checkpoint/safetensors.h"
#include "impl/numerics/bf16.h"
#include "impl/training/assembly.h"

namespace gatherfuzz {

namespace {

constexpr std::string_view kStep = "step";

// Flags without which the params are not the same params.
constexpr std::string_view kModelFlags[] = {"fp8_recipe",
                                            "num_layers",
                                            "hidden_size",
                                            "ffn_hidden_size",
                                            "num_attention_heads",
                                            "vocab_size",
                                            "untie_embeddings_and_output_weights"};

// One of the three values of each element that the optimizer keeps.
struct StatePart {
  std::string_view prefix;
  std::vector<float> ParamState::*values;
};
constexpr StatePart kParts[] = {{"main_param.", &ParamState::main},
                                {"exp_avg.", &ParamState::exp_avg},
                                {"exp_avg_sq.", &ParamState::exp_avg_sq}};

std::span<const uint8_t> bytes_of(const void* data, std::size_t size) {
  return {static_cast<const uint8_t*>(data), size};
}
std::span<const uint8_t> bytes_of(const std::string& text) {
  return bytes_of(text.data(), text.size());
}

std::vector<uint64_t> shape_of(const ParamInfo& info) {
  if (!is_matrix(info)) return {static_cast<uint64_t>(info.cols)};
  return {static_cast<uint64_t>(info.rows), static_cast<uint64_t>(info.cols)};
}

// What forward and backward read of the main params, before any quantization.
std::vector<uint8_t> weight_bytes(TensorType type, const std::vector<float>& main) {
  std::vector<uint8_t> bytes(main.size() * size_of(type));
  if (type == TensorType::f32) {
    std::memcpy(bytes.data(), main.data(), bytes.size());
    return bytes;
  }
  for (std::size_t i = 0; i < main.size(); ++i) {
    const bf16 value = to_bf16(main[i]);
    std::memcpy(&bytes[i * sizeof value], &value, sizeof value);
  }
  return bytes;
}

TensorType weight_type(const Flags& flags) {
  return flags.fp8_recipe == Recipe::fp32 ? TensorType::f32 : TensorType::bf16;
}

CheckpointError in_file(std::string_view file, const CheckpointError& error) {
  return {error.damage, error.message(file)};
}

// The tensors of a file by name. What is asked for is taken, and nothing may be left.
class TensorTable {
 public:
  TensorTable(std::string_view file, std::vector<Tensor> tensors) : file_(file) {
    for (Tensor& tensor : tensors) by_name_.emplace(tensor.name, std::move(tensor));
  }

  Checked<std::span<const uint8_t>> take(const std::string& name, TensorType type,
                                         const std::vector<uint64_t>& shape) {
    const auto found = by_name_.find(name);
    const std::string expected = "expected " + name + ", " + shape_text(type, shape);
    if (found == by_name_.end())
      return in_file(file_, {Damage::missing_tensor, expected + ", found none of that name"});
    const Tensor tensor = std::move(found->second);
    by_name_.erase(found);
    if (tensor.type != type || tensor.shape != shape)
      return in_file(file_, {tensor.type != type ? Damage::dtype : Damage::shape,
                             expected + ", found " + shape_text(tensor.type, tensor.shape)});
    return tensor.data;
  }

  std::optional<CheckpointError> anything_left() const {
    if (by_name_.empty()) return std::nullopt;
    return in_file(file_, {Damage::extra_tensor,
                           "expected the tensors of this model, found also " + by_name_.begin()->first});
  }

 private:
  std::string_view file_;
  std::map<std::string, Tensor> by_name_;
};

Checked<TensorTable> open_table(std::string_view name, const std::string& content, const Manifest& manifest) {
  const auto sum = manifest.files.find(std::string(name));
  if (sum == manifest.files.end())
    return in_file(kManifestFile,
                   {Damage::header, "expected " + std::string(name) + " among files, found none"});
  const auto same = check_sum(sum->second, bytes_of(content));
  if (value_of(same) == nullptr) return in_file(name, error_of(same));
  Checked<std::vector<Tensor>> tensors = parse_safetensors(bytes_of(content));
  if (value_of(tensors) == nullptr) return in_file(name, error_of(tensors));
  return TensorTable(name, std::get<std::vector<Tensor>>(std::move(tensors)));
}

Checked<Flags> flags_of(const Manifest& manifest) {
  Flags flags;
  for (const auto& [name, value] : manifest.flags)
    if (const std::string problem = set_flag(flags, name, value); !problem.empty())
      return in_file(kManifestFile, {Damage::header, problem});
  const std::vector<FlagConflict> conflicts = validate(flags);
  if (!conflicts.empty()) return in_file(kManifestFile, {Damage::header, conflicts.front().text()});
  return flags;
}

// The manifest's numbers in the types that hold them.
Checked<TrainingState> counters_of(const Manifest& m) {
  constexpr uint64_t kMost = std::numeric_limits<int>::max();
  for (const uint64_t value : {m.step, m.batch, m.evaluations, m.microbatches})
    if (value > kMost)
      return in_file(kManifestFile, {Damage::header, "expected counts of at most " + std::to_string(kMost) +
                                                         ", found " + std::to_string(value)});
  TrainingState state;
  state.step = static_cast<int>(m.step);
  state.batch = static_cast<uint32_t>(m.batch);
  state.evaluations = static_cast<uint32_t>(m.evaluations);
  state.microbatches = static_cast<int>(m.microbatches);
  return state;
}

// Main params and moments of all params, and the step.
std::optional<CheckpointError> take_optimizer(TensorTable& table, const std::vector<ParamInfo>& params,
                                              TrainingState& state) {
  for (const ParamInfo& info : params) {
    ParamState& param = state.params.emplace_back();
    for (const StatePart& part : kParts) {
      const auto data =
          table.take(std::string(part.prefix) + pytorch_name(info.name), TensorType::f32, shape_of(info));
      if (value_of(data) == nullptr) return error_of(data);
      std::vector<float>& values = param.*part.values;
      values.resize(value_of(data)->size() / sizeof(float));
      std::memcpy(values.data(), value_of(data)->data(), value_of(data)->size());
    }
  }
  const auto data = table.take(std::string(kStep), TensorType::i64, {});
  if (value_of(data) == nullptr) return error_of(data);
  int64_t step = 0;
  std::memcpy(&step, value_of(data)->data(), sizeof step);
  if (step == state.step) return table.anything_left();
  return in_file(kOptimizerFile,
                 {Damage::mismatch, "expected step " + std::to_string(state.step) +
                                        " as in the manifest, found " + std::to_string(step)});
}

// The weights say nothing that the main params do not: they must agree.
std::optional<CheckpointError> check_model(TensorTable& table, const Flags& flags,
                                           const std::vector<ParamInfo>& params, const TrainingState& state) {
  const TensorType type = weight_type(flags);
  for (std::size_t p = 0; p < params.size(); ++p) {
    const std::string name = pytorch_name(params[p].name);
    const auto data = table.take(name, type, shape_of(params[p]));
    if (value_of(data) == nullptr) return error_of(data);
    const std::vector<uint8_t> expected = weight_bytes(type, state.params[p].main);
    if (!std::equal(expected.begin(), expected.end(), value_of(data)->begin(), value_of(data)->end()))
      return in_file(kModelFile, {Damage::mismatch,
                                  "expected " + name + " to be its main param, rounded; found other values"});
  }
  return table.anything_left();
}

Manifest manifest_of(const Checkpoint& checkpoint) {
  Manifest m;
  m.step = static_cast<uint64_t>(checkpoint.state.step);
  m.batch = checkpoint.state.batch;
  m.evaluations = checkpoint.state.evaluations;
  m.microbatches = static_cast<uint64_t>(checkpoint.state.microbatches);
  for (const FlagInfo& flag : flag_table())
    if (const std::string text = flag.text(checkpoint.flags); text != flag.default_text())
      m.flags[std::string(flag.name)] = text;
  return m;
}

}  // namespace

CheckpointFiles encode_checkpoint(const Checkpoint& checkpoint) {
  const std::vector<ParamInfo> params = model_params(model_config(checkpoint.flags));
  const TensorType type = weight_type(checkpoint.flags);
  std::vector<Tensor> model, optimizer;
  std::vector<std::vector<uint8_t>> weights;
  for (std::size_t p = 0; p < params.size(); ++p) {
    const std::string name = pytorch_name(params[p].name);
    const ParamState& state = checkpoint.state.params[p];
    weights.push_back(weight_bytes(type, state.main));
    model.push_back({name, type, shape_of(params[p]), weights.back()});
    for (const StatePart& part : kParts) {
      const std::vector<float>& values = state.*part.values;
      optimizer.push_back({std::string(part.prefix) + name, TensorType::f32, shape_of(params[p]),
                           bytes_of(values.data(), values.size() * sizeof(float))});
    }
  }
  const int64_t step = checkpoint.state.step;
  optimizer.push_back({std::string(kStep), TensorType::i64, {}, bytes_of(&step, sizeof step)});

  CheckpointFiles files;
  files.model = write_safetensors(model);
  files.optimizer = write_safetensors(optimizer);
  Manifest manifest = manifest_of(checkpoint);
  manifest.files[std::string(kModelFile)] = sum_of(bytes_of(files.model));
  manifest.files[std::string(kOptimizerFile)] = sum_of(bytes_of(files.optimizer));
  files.manifest = write_manifest(manifest);
  return files;
}

Checked<Checkpoint> decode_checkpoint(const CheckpointFiles& files) {
  const Checked<Manifest> manifest = parse_manifest(files.manifest);
  if (value_of(manifest) == nullptr) return in_file(kManifestFile, error_of(manifest));
  const Checked<Flags> flags = flags_of(*value_of(manifest));
  if (value_of(flags) == nullptr) return error_of(flags);
  const Checked<TrainingState> counters = counters_of(*value_of(manifest));
  if (value_of(counters) == nullptr) return error_of(counters);
  Checked<TensorTable> model = open_table(kModelFile, files.model, *value_of(manifest));
  if (value_of(model) == nullptr) return error_of(model);
  Checked<TensorTable> optimizer = open_table(kOptimizerFile, files.optimizer, *value_of(manifest));
  if (value_of(optimizer) == nullptr) return error_of(optimizer);

  Checkpoint checkpoint{*value_of(flags), *value_of(counters)};
  const std::vector<ParamInfo> params = model_params(model_config(checkpoint.flags));
  if (auto error = take_optimizer(std::get<TensorTable>(optimizer), params, checkpoint.state)) return *error;
  if (auto error = check_model(std::get<TensorTable>(model), checkpoint.flags, params, checkpoint.state))
    return *error;
  return checkpoint;
}

std::string save_checkpoint(const std::string& parent, const Checkpoint& checkpoint) {
  const CheckpointFiles files = encode_checkpoint(checkpoint);
  return write_checkpoint_folder(
      parent, static_cast<uint64_t>(checkpoint.state.step),
      {{kModelFile, files.model}, {kOptimizerFile, files.optimizer}, {kManifestFile, files.manifest}});
}

Checked<Checkpoint> load_checkpoint(const std::string& path) {
  const std::optional<std::string> folder = find_checkpoint(path, kManifestFile);
  if (!folder)
    return CheckpointError{Damage::unreadable,
                           path + ": expected a checkpoint, or a folder with step-*, found neither"};
  CheckpointFiles files;
  const std::pair<std::string_view, std::string*> parts[] = {
      {kManifestFile, &files.manifest}, {kModelFile, &files.model}, {kOptimizerFile, &files.optimizer}};
  for (const auto& [name, content] : parts) {
    // Three FP32 values an element are the most that the flags allow, and a header.
    const auto most = static_cast<std::size_t>(kElementLimit) * 3 * sizeof(float) + kLargestSafetensorsHeader;
    Checked<std::string> read =
        read_checkpoint_file(*folder, name, name == kManifestFile ? kLargestManifest : most);
    if (value_of(read) == nullptr) return in_file(*folder + "/" + std::string(name), error_of(read));
    *content = std::get<std::string>(std::move(read));
  }
  Checked<Checkpoint> checkpoint = decode_checkpoint(files);
  if (value_of(checkpoint) != nullptr) return checkpoint;
  return CheckpointError{error_of(checkpoint).damage, *folder + "/" + error_of(checkpoint).text};
}

Checked<std::monostate> check_same_model(const Flags& saved, const Flags& wanted) {
  for (const std::string_view name : kModelFlags) {
    const FlagInfo& flag = *find_flag(name);
    if (flag.text(saved) != flag.text(wanted))
      return CheckpointError{Damage::mismatch, "expected a checkpoint with " + std::string(name) + " " +
                                                   flag.text(wanted) + ", found " + flag.text(saved)};
  }
  return std::monostate{};
}

std::string pytorch_name(std::string_view param) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {{"embedding", "embed_tokens"},
                                                                      {"norm1", "input_layernorm"},
                                                                      {"qkv", "self_attn.qkv_proj"},
                                                                      {"proj", "self_attn.o_proj"},
                                                                      {"norm2", "post_attention_layernorm"},
                                                                      {"fc1", "mlp.gate_up_proj"},
                                                                      {"fc2", "mlp.down_proj"},
                                                                      {"final_norm", "norm"}};
  if (param == "output") return "lm_head.weight";
  const std::size_t dot = param.rfind('.');
  const std::string_view own = dot == std::string_view::npos ? param : param.substr(dot + 1);
  const std::string_view layer = param.substr(0, param.size() - own.size());
  for (const auto& [name, pytorch] : kNames)
    if (own == name) return "model." + std::string(layer) + std::string(pytorch) + ".weight";
  throw std::invalid_argument("no PyTorch name is known for the param " + std::string(param));
}

}  // namespace gatherfuzz
