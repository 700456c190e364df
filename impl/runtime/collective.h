// In-place collectives over all ranks of a bucket, with exact footprints: an all-gather reads the own shard
// and writes only the others; a reduce-scatter reads the whole bucket and writes the own shard, and the other
// shards keep this rank's unreduced values; an all-reduce rewrites everything. Reductions add in ascending
// rank order in FP32 and round once; an average multiplies by 1/ranks before it adds, as NCCL does. Layout
// rule as NCCL has it: rank r's shard is at r * count elements.
#pragma once

#include "impl/runtime/runtime.h"

namespace gatherfuzz {

enum class Reduction : uint8_t { none, sum, average, max };

struct AllGather {
  static constexpr const char* kName = "all_gather";
  Read<raw, Content::staged> own;
  Write<raw, Content::gathered> before;  // shards of lower ranks
  Write<raw, Content::gathered> after;   // shards of higher ranks
  int32_t count = 0;                     // elements a shard

  static void host_collective(std::span<const void* const> ops, std::span<HostMemory> memories);
  static void symbolic_collective(std::span<const void* const> ops, std::span<SymbolicMemory> memories);
};

struct ReduceScatter {
  static constexpr const char* kName = "reduce_scatter";
  Read<real, Content::grad> before;
  Update<real, Content::reduced> own;
  Read<real, Content::grad> after;
  int32_t count = 0;
  Reduction reduction = Reduction::sum;

  static void host_collective(std::span<const void* const> ops, std::span<HostMemory> memories);
  static void symbolic_collective(std::span<const void* const> ops, std::span<SymbolicMemory> memories);
};

// Of float or bf16 (sum, average or max) or of 64-bit counts (sum).
struct AllReduce {
  static constexpr const char* kName = "all_reduce";
  Update<raw, Content::scalar> values;
  int32_t count = 0;
  Reduction reduction = Reduction::sum;

  static void host_collective(std::span<const void* const> ops, std::span<HostMemory> memories);
  static void symbolic_collective(std::span<const void* const> ops, std::span<SymbolicMemory> memories);
};

// Ops for a whole bucket, split at the own shard of `rank`. Throws invalid_value if the bucket is not `ranks`
// equal shards.
AllGather all_gather_in_place(const Operand& bucket, int rank, int ranks);
ReduceScatter reduce_scatter_in_place(const Operand& bucket, int rank, int ranks, Reduction reduction);

// Throws nccl_invalid_usage unless the op's pieces are one bucket of equal shards in which `rank` owns its
// own: the one overlap of source and target that is defined (in place; rule 55).
void check_layout(const OpType& type, const void* op, int rank, int ranks);

// The memory of a collective: the own shard and the whole bucket. Of an all-reduce both are all of it.
struct CollectiveRanges {
  Operand own;
  Operand whole;
};
CollectiveRanges collective_ranges(const OpType& type, const void* op);

// What every rank must agree on.
struct CollectiveCall {
  const OpType* type = nullptr;
  int64_t count = 0;
  DType dtype = DType::u8;
  Reduction reduction = Reduction::none;
  bool operator==(const CollectiveCall&) const = default;
};
CollectiveCall describe_collective(const OpType& type, const void* op);

}  // namespace gatherfuzz
