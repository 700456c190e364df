// Puts one rank's parts together from flags: buffers, quantized weights, model, gather, gradient sync and
// optimizer.
#pragma once

#include <memory>
#include <vector>

#include "impl/model/model.h"
#include "impl/model/passes.h"
#include "impl/optimizer/distributed_optimizer.h"
#include "impl/param_gather/grad_sync.h"
#include "impl/param_gather/param_gather.h"
#include "impl/training/flags.h"

namespace gatherfuzz {

ModelConfig model_config(const Flags& flags);

// Params in registration order, as indices in the model; shuffled by a fixed rule that depends on their
// number alone.
std::vector<uint32_t> registration_order(const Flags& flags, std::size_t params);

struct Assembly {
  // Flags must have been validated. `coarse`: a module's pass is one op. `like`: another rank's parts, or
  // null, whose recorded passes are shared.
  Assembly(Runtime& runtime, const Flags& flags, bool coarse, const Assembly* like = nullptr);

  Streams streams;
  std::vector<ParamInfo> params;
  std::vector<BufferPair> buffers;
  std::vector<QuantizedWeight> weights;  // by param
  std::unique_ptr<ParamGather> gather;
  std::unique_ptr<GradSync> grad_sync;
  std::unique_ptr<DistributedOptimizer> optimizer;
  std::unique_ptr<Model> model;
  std::unique_ptr<Passes> passes;

 private:
  void make_weights(Runtime& runtime);
  std::vector<ParamBinding> bindings() const;
};

// Norm weights are none, and are not decayed, as in Megatron (no_weight_decay_cond).
bool is_matrix(const ParamInfo& info);

// How a parameter starts: norms as ones, matrices with the deviation 1/sqrt(columns).
struct InitialDistribution {
  float deviation = 0.0f;
  float constant = 0.0f;
};
InitialDistribution initial_distribution(const ParamInfo& info);

// Initial main params of the rank's shards, from the seed; their values are bf16 values.
void initialize_main_params(Runtime& runtime, const Flags& flags, const Assembly& assembly);

}  // namespace gatherfuzz
