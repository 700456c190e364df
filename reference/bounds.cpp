#include "reference/bounds.h"

#include <cmath>

namespace gatherfuzz::reference {
namespace {

constexpr double kFp32Unit = 0x1p-24;  // half a unit in the last place
constexpr double kBf16Flip = 0x1p-7;   // one unit in the last place, at the low end of a binade
constexpr double kE4m3Step = 0x1p-3;

// What a path from weights to a quantity passes through, one after the other.
struct Path {
  int terms = 0;          // of FP32 sums
  int roundings = 0;      // to bf16
  int quantizations = 0;  // to MX blocks
};

// Per layer: norm1, qkv, attention, proj, add, norm2, fc1, swiglu, fc2, add. Then final_norm and output.
Path forward_path(const Shape& shape) {
  const int norm = shape.hidden_size;
  const int attention = shape.head_dim() + 2 * shape.seq_length;  // scores, their sum, the context
  const int linear = 3 * shape.hidden_size + shape.ffn_hidden_size;
  const int layer = 2 * norm + attention + linear;
  return {shape.num_layers * layer + norm + shape.hidden_size, 10 * shape.num_layers + 2,
          4 * mx_layers(shape)};
}

// The forward path, then dlogits, output, final_norm; per layer fc2, swiglu, fc1, norm2, add, proj,
// attention, qkv, norm1, add; and the sum over tokens of a weight's gradient with its two operands. Only MX
// weights quantize.
Path gradient_path(const Shape& shape) {
  const int norm = 2 * shape.hidden_size;  // the sum q, and r from forward
  const int attention = 2 * shape.head_dim() + 2 * shape.seq_length;
  const int linear = 5 * shape.hidden_size + 2 * shape.ffn_hidden_size;  // over outputs: H + 2F + H + 3H
  const int layer = 2 * norm + attention + linear;
  const Path forward = forward_path(shape);
  const int quantizations = mx_layers(shape) == 0 ? 0 : 4 * mx_layers(shape) + 2;
  return {
      forward.terms + shape.vocab_size + shape.vocab_size + norm + shape.num_layers * layer + shape.tokens(),
      forward.roundings + 10 * shape.num_layers + 3, forward.quantizations + quantizations};
}

double deviation(const Path& path, Precision precision) {
  double squares = 0;
  if (precision != Precision::fp32) squares += path.roundings * kBf16Flip * kBf16Flip;
  if (precision == Precision::mxfp8) squares += path.quantizations * kBf16Flip * kE4m3Step;
  return path.terms * kFp32Unit + std::sqrt(squares);
}

}  // namespace

Bounds hop2_bounds(const Shape& shape, Precision precision, float logits_rms) {
  const double rms = static_cast<double>(logits_rms);
  const double logits = deviation(forward_path(shape), precision) * rms;
  // The loss itself: a sum over the vocabulary, one over tokens, of values about log(vocabulary) + rms.
  const double loss_sums =
      (shape.vocab_size + shape.tokens()) * kFp32Unit * (std::log(shape.vocab_size) + rms);
  return {static_cast<float>(std::sqrt(2.0) * logits + loss_sums),
          static_cast<float>(std::hypot(deviation(gradient_path(shape), precision), logits))};
}

}  // namespace gatherfuzz::reference
