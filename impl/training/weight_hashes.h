// Whether all ranks hold the same weights: each hashes its own, hashes are gathered and compared
// (check_param_hashes_across_dp_replicas in Megatron-LM).
#pragma once

#include <stdexcept>

#include "impl/training/assembly.h"

namespace gatherfuzz {

struct WeightsDiffer : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class WeightHashes {
 public:
  // `parts` must outlive it.
  WeightHashes(Runtime& runtime, const Assembly& parts);

  // Every plane of every weight as it is now. Throws WeightsDiffer on all ranks if two ranks differ.
  void check();

 private:
  View<uint64_t> hash_of(uint32_t rank, uint32_t param) const {
    return hashes_.slice(rank * static_cast<uint32_t>(parts_.params.size()) + param, 1);
  }
  void hash_own();
  void gather();

  Runtime& runtime_;
  const Assembly& parts_;
  View<uint64_t> hashes_;  // [ranks, params]
  View<float> differ_;
  EventId hashed_ = 0;
  EventId gathered_ = 0;
};

}  // namespace gatherfuzz
