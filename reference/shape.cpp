#include "reference/shape.h"

namespace gatherfuzz::reference {

bool has_mx_weights(const Shape& shape, int layer) {
  return !shape.first_last_layers_bf16 || (layer > 0 && layer < shape.num_layers - 1);
}

int mx_layers(const Shape& shape) {
  int layers = 0;
  for (int layer = 0; layer < shape.num_layers; ++layer) layers += has_mx_weights(shape, layer) ? 1 : 0;
  return layers;
}

std::vector<ParamShape> param_shapes(const Shape& shape) {
  const int hidden = shape.hidden_size;
  const int ffn = shape.ffn_hidden_size;
  std::vector<ParamShape> params = {{"embedding", shape.vocab_size, hidden, false}};
  for (int layer = 0; layer < shape.num_layers; ++layer) {
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    const bool mx = has_mx_weights(shape, layer);
    params.push_back({prefix + "norm1", 1, hidden, false});
    params.push_back({prefix + "qkv", 3 * hidden, hidden, mx});
    params.push_back({prefix + "proj", hidden, hidden, mx});
    params.push_back({prefix + "norm2", 1, hidden, false});
    params.push_back({prefix + "fc1", 2 * ffn, hidden, mx});
    params.push_back({prefix + "fc2", hidden, ffn, mx});
  }
  params.push_back({"final_norm", 1, hidden, false});
  if (!shape.tied_embeddings) params.push_back({"output", shape.vocab_size, hidden, false});
  return params;
}

LayerParams layer_params(int layer) {
  const int first = 1 + 6 * layer;
  return {first, first + 1, first + 2, first + 3, first + 4, first + 5};
}

int final_norm_index(const Shape& shape) {
  return 1 + 6 * shape.num_layers;
}

int output_index(const Shape& shape) {
  return shape.tied_embeddings ? kEmbedding : 2 + 6 * shape.num_layers;
}

}  // namespace gatherfuzz::reference
