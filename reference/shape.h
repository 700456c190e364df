// The model's shape and its parameters in registration order.
//
// A decoder-only transformer: embedding; per layer norm1, qkv, proj, norm2, fc1, fc2; final_norm; output.
// A linear weight is [out, in] row-major; a norm's gain is one row.
#pragma once

#include <string>
#include <vector>

namespace gatherfuzz::reference {

struct Shape {
  int num_layers = 0;
  int hidden_size = 0;
  int ffn_hidden_size = 0;
  int num_attention_heads = 0;
  int seq_length = 0;
  int vocab_size = 0;
  int micro_batch_size = 0;
  bool first_last_layers_bf16 = false;  // the first and the last layer have no MX weights
  bool tied_embeddings = false;         // the output layer multiplies by the embedding: there is no "output"

  int tokens() const { return micro_batch_size * seq_length; }
  int head_dim() const { return hidden_size / num_attention_heads; }
};

// What forward and backward compute with. fp32: FP32 weights and activations. bf16: both bf16. mxfp8: bf16,
// with qkv, proj, fc1 and fc2 multiplied in MX blocks, in the layers that have MX weights. Sums are FP32 in
// all three.
enum class Precision { fp32, bf16, mxfp8 };

struct ParamShape {
  std::string name;  // "embedding", "layers.0.norm1", ...
  int rows = 0;
  int cols = 0;
  bool mx = false;  // an MX weight under Precision::mxfp8

  int size() const { return rows * cols; }
};

std::vector<ParamShape> param_shapes(const Shape& shape);

// Whether a layer, counted from 0, has MX weights under Precision::mxfp8, and how many layers have.
bool has_mx_weights(const Shape& shape, int layer);
int mx_layers(const Shape& shape);

// Indices into param_shapes.
struct LayerParams {
  int norm1, qkv, proj, norm2, fc1, fc2;
};
inline constexpr int kEmbedding = 0;
LayerParams layer_params(int layer);
int final_norm_index(const Shape& shape);
int output_index(const Shape& shape);  // kEmbedding with tied embeddings

}  // namespace gatherfuzz::reference
