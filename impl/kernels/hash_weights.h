// Hashes of weights, with which ranks find out whether they hold the same ones
// (check_param_hashes_across_dp_replicas in Megatron-LM).
#pragma once

#include "impl/runtime/op_type.h"

namespace gatherfuzz {

// Of all planes of an MXFP8 weight.
struct HashPlanes {
  static constexpr const char* kName = "hash_weight";
  Weight<e4m3, Plane::rowwise> rowwise;
  Weight<e8m0, Plane::rowwise_scale> rowwise_scale;
  Weight<e4m3, Plane::columnwise> columnwise;
  Weight<e8m0, Plane::columnwise_scale> columnwise_scale;
  Write<uint64_t, Content::scalar> hash;

  void host(HostMemory& memory) const;
};

// Of a weight that is stored whole.
struct HashWhole {
  static constexpr const char* kName = "hash_weight";
  Weight<real, Plane::whole> weight;
  Write<uint64_t, Content::scalar> hash;

  void host(HostMemory& memory) const;
};

// hashes [ranks, params], gathered from all ranks. Leaves 1 if two ranks differ in any of them, otherwise 0;
// on `symbolic` the difference is the taint of what it leaves.
struct CompareHashes {
  static constexpr const char* kName = "compare_weight_hashes";
  Read<uint64_t, Content::gathered> hashes;
  Write<float, Content::scalar> differ;
  int32_t ranks = 1;

  void host(HostMemory& memory) const;
  void symbolic(SymbolicMemory& memory) const;
};

}  // namespace gatherfuzz
