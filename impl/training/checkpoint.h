// A checkpoint: a training state and the flags of the run that came to it. On disk three files:
// model.safetensors, the weights as a PyTorch user expects them; optimizer.safetensors, FP32 main params and
// moments; manifest.json.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "impl/checkpoint/error.h"
#include "impl/training/flags.h"
#include "impl/training/training_state.h"

namespace gatherfuzz {

inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr std::string_view kModelFile = "model.safetensors";
inline constexpr std::string_view kOptimizerFile = "optimizer.safetensors";

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
