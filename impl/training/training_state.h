// Everything that training depends on and flags do not give, whole and not cut into shards, so that any
// number of ranks and any buckets can go on from it.
#pragma once

#include <cstdint>
#include <vector>

#include "impl/training/assembly.h"

namespace gatherfuzz {

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

// Zeros, for a model of these params.
std::vector<ParamState> make_param_states(const std::vector<ParamInfo>& params);

// This rank's shards into `params`, of which ranks fill their own parts. Waits until they are there.
void copy_shards_to_host(Runtime& runtime, const Assembly& parts, std::vector<ParamState>& params);
// And back; `params` may go when this returns.
void copy_shards_from_host(Runtime& runtime, const Assembly& parts, const std::vector<ParamState>& params);

}  // namespace gatherfuzz
