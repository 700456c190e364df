// The model's shape, what it computes with, and its parameters.
//
// A decoder-only transformer: embedding; per layer norm1, qkv, proj, norm2, fc1, fc2; final norm; output. A
// linear weight is [out, in] row-major. qkv's rows are all query heads, then all key, then all value heads;
// fc1's first ffn_hidden_size rows are the gate, the others the up half; a norm's gain is one row.
#pragma once

#include <string>
#include <vector>

#include "impl/numerics/dtype.h"
#include "impl/numerics/mx.h"

namespace gatherfuzz {

struct ModelConfig {
  int num_layers = 2;
  int hidden_size = 64;
  int ffn_hidden_size = 128;
  int num_attention_heads = 4;
  int seq_length = 32;
  int vocab_size = 128;
  int micro_batch_size = 1;
  bool mx = false;                      // qkv, proj, fc1 and fc2 multiply in MXFP8
  bool first_last_layers_bf16 = false;  // but not those of the first and the last layer
  bool mx_params =
      false;  // their weights are stored as MXFP8 planes; otherwise whole, and quantized where used
  DType activation = DType::bf16;  // f32 or bf16; also the dtype of weights stored whole
  ScaleRounding rounding = ScaleRounding::up;
  bool tied_embeddings = false;  // the output layer multiplies by the embedding: there is no "output"
  bool per_token_loss = false;   // losses and gradients are sums over tokens, without those of masked targets
  int max_microbatches = 16;

  int tokens() const { return micro_batch_size * seq_length; }
  // Whether a layer, counted from 0, stays in bf16 when the model multiplies in MXFP8.
  bool stays_bf16(int layer) const {
    return first_last_layers_bf16 && (layer == 0 || layer + 1 == num_layers);
  }
  bool operator==(const ModelConfig&) const = default;
};

struct ParamInfo {
  std::string name;  // "embedding", "layers.0.norm1", ...
  int rows = 0;
  int cols = 0;
  bool mxfp8 = false;  // multiplies in MXFP8 when the model does: qkv, proj, fc1 and fc2 of such layers

  int size() const { return rows * cols; }
};

// In registration order.
std::vector<ParamInfo> model_params(const ModelConfig& config);

// Indices into model_params.
struct LayerParams {
  int norm1, qkv, proj, norm2, fc1, fc2;
  bool operator==(const LayerParams&) const = default;
};
inline constexpr int kEmbeddingParam = 0;
LayerParams layer_params(int layer);
int final_norm_param(const ModelConfig& config);
int output_param(const ModelConfig& config);  // kEmbeddingParam with tied embeddings

// Throws std::invalid_argument for a shape that the kernels cannot compute: heads that do not divide
// hidden_size, or MXFP8 with FP32 activations or with sizes that blocks of 32 do not fit.
void check_config(const ModelConfig& config);

}  // namespace gatherfuzz
