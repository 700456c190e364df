// A checkpoint: everything that training depends on and flags do not give, whole and not cut into shards, so
// that any number of ranks and any buckets can go on from it. On disk three files: model.safetensors, the
// weights as a PyTorch user expects them; optimizer.safetensors, FP32 main params and moments; manifest.json.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "impl/checkpoint/error.h"
#include "impl/training/flags.h"

namespace gatherfuzz {

inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr std::string_view kModelFile = "model.safetensors";
inline constexpr std::string_view kOptimizerFile = "optimizer.safetensors";

struct ParamState {
  std::vector<float> main, exp_avg, exp_avg_sq;

  bool operator==(const ParamState&) const = default;
};

struct TrainingState {
  int step = 0;                    // steps taken
  uint32_t batch = 0;              // the next one
  uint32_t evaluations = 0;        // evaluation batches used
  int microbatches = 1;            // of the next iteration
  std::vector<ParamState> params;  // in the order of model_params

  bool operator==(const TrainingState&) const = default;
};

struct Checkpoint {
  Flags flags;  // of the run that wrote it
  TrainingState state;
};

struct CheckpointFiles {
  std::string manifest, model, optimizer;
};
CheckpointFiles encode_checkpoint(const Checkpoint& checkpoint);

// Refuses, by name, whatever is not as it was written. The text of an error names the file.
Checked<Checkpoint> decode_checkpoint(const CheckpointFiles& files);

// PARENT/step-N, complete or not at all. Returns its path; throws CheckpointNotWritten.
std::string save_checkpoint(const std::string& parent, const Checkpoint& checkpoint);
// `path`: a checkpoint, or the parent of some, whose latest is read.
Checked<Checkpoint> load_checkpoint(const std::string& path);

// Whether a run with these flags can go on from a checkpoint of those: the model must be the same.
Checked<std::monostate> check_same_model(const Flags& saved, const Flags& wanted);

// "layers.0.qkv" -> "model.layers.0.self_attn.qkv_proj.weight": names of Phi-3 in Hugging Face transformers,
// whose qkv and gate and up projections are fused too.
std::string pytorch_name(std::string_view param);

}  // namespace gatherfuzz
