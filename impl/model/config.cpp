#include "impl/model/config.h"

#include <stdexcept>

namespace gatherfuzz {

std::vector<ParamInfo> model_params(const ModelConfig& config) {
  const int hidden = config.hidden_size;
  const int ffn = config.ffn_hidden_size;
  std::vector<ParamInfo> params;
  params.push_back({"embedding", config.vocab_size, hidden, false});
  for (int layer = 0; layer < config.num_layers; ++layer) {
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    const bool mxfp8 = !config.stays_bf16(layer);
    params.push_back({prefix + "norm1", 1, hidden, false});
    params.push_back({prefix + "qkv", 3 * hidden, hidden, mxfp8});
    params.push_back({prefix + "proj", hidden, hidden, mxfp8});
    params.push_back({prefix + "norm2", 1, hidden, false});
    params.push_back({prefix + "fc1", 2 * ffn, hidden, mxfp8});
    params.push_back({prefix + "fc2", hidden, ffn, mxfp8});
  }
  params.push_back({"final_norm", 1, hidden, false});
  if (!config.tied_embeddings) params.push_back({"output", config.vocab_size, hidden, false});
  return params;
}

LayerParams layer_params(int layer) {
  const int first = 1 + 6 * layer;
  return {first, first + 1, first + 2, first + 3, first + 4, first + 5};
}

int final_norm_param(const ModelConfig& config) {
  return 1 + 6 * config.num_layers;
}

int output_param(const ModelConfig& config) {
  return config.tied_embeddings ? kEmbeddingParam : 2 + 6 * config.num_layers;
}

void check_config(const ModelConfig& config) {
  if (config.num_attention_heads < 1 || config.hidden_size % config.num_attention_heads != 0)
    throw std::invalid_argument("num_attention_heads must divide hidden_size, found " +
                                std::to_string(config.num_attention_heads) + " and " +
                                std::to_string(config.hidden_size));
  if (config.activation != DType::f32 && config.activation != DType::bf16)
    throw std::invalid_argument(std::string("activations must be f32 or bf16, found ") +
                                name_of(config.activation));
  if (!config.mx) return;
  if (config.activation != DType::bf16)
    throw std::invalid_argument("MXFP8 quantizes bf16 values: activations must be bf16, found f32");
  for (const int size : {config.hidden_size, config.ffn_hidden_size, config.tokens()})
    if (size % kMxBlock != 0)
      throw std::invalid_argument(
          "MXFP8 needs hidden_size, ffn_hidden_size and tokens in multiples of 32, found " +
          std::to_string(size));
}

}  // namespace gatherfuzz
