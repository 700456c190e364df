// Ops between the backward pass and the optimizer: scaling, checks, and the way of reduced gradients to FP32.
#pragma once

#include "impl/runtime/op_type.h"

namespace gatherfuzz {

// values *= factor, rounded to the grad dtype: averaging before the reduce-scatter.
struct ScaleGradients {
  static constexpr const char* kName = "scale_gradients";
  Update<real, Content::grad> values;
  Coefficient factor;

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

// flag = 1 if any of the values is infinite or NaN, otherwise what it was.
struct CheckGradients {
  static constexpr const char* kName = "check_for_nan_in_grad";
  Read<real, Content::grad> values;
  Update<float, Content::scalar> flag;

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

// The reduced gradients of a shard, to FP32 for the optimizer; uses them up.
struct CopyReducedGradients {
  static constexpr const char* kName = "copy_reduced_grads";
  Consume<real, Content::reduced> source;
  Write<float, Content::spent> target;

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

// grads *= 1/loss_scale in FP32; found_inf = 1 if any result is infinite or NaN, otherwise what it was.
struct UnscaleGradients {
  static constexpr const char* kName = "unscale_grads";
  Update<float, Content::spent> grads;
  Update<float, Content::scalar> found_inf;
  Coefficient factor;

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

// Overwrites one reduced element with infinity, where a test asks for it.
struct PoisonShard {
  static constexpr const char* kName = "poison_shard";
  Write<real, Content::reduced> element;

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

// out = (sum of the losses of all microbatches) * factor, with per-token loss / max(tokens, 1) instead;
// summed over ranks afterwards.
struct AverageLoss {
  static constexpr const char* kName = "average_loss";
  Read<float, Content::scalar> losses;
  Write<float, Content::scalar> out;
  Coefficient factor;
  Read<float, Content::scalar> tokens = {};  // per-token loss only: the number of tokens on all ranks

  void host(HostMemory& memory) const;
};

}  // namespace gatherfuzz
