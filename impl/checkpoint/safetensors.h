// The safetensors format (github.com/huggingface/safetensors): eight bytes, the length of the header; the
// header, JSON that names each tensor with dtype, shape and where its bytes lie; the bytes, which tensors
// cover without overlap or gap. All little endian.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "impl/checkpoint/error.h"

namespace gatherfuzz {

// What this tool writes; others are refused.
enum class TensorType : uint8_t { f32, bf16, i64 };
std::string_view name_of(TensorType type);
std::size_t size_of(TensorType type);

// `data` belongs to somebody else.
struct Tensor {
  std::string name;
  TensorType type = TensorType::f32;
  std::vector<uint64_t> shape;  // a scalar has none
  std::span<const uint8_t> data;
};
// "F32 [64, 32]".
std::string shape_text(TensorType type, const std::vector<uint64_t>& shape);

// With the metadata by which transformers knows tensors of PyTorch.
std::string write_safetensors(const std::vector<Tensor>& tensors);

// Any bytes are a valid argument. The tensors in the order of their bytes, which stay where they are.
Checked<std::vector<Tensor>> parse_safetensors(std::span<const uint8_t> bytes);

inline constexpr uint64_t kLargestSafetensorsHeader = 16 * 1024 * 1024;

}  // namespace gatherfuzz
