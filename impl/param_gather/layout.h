// Where parameters lie in a param or grad buffer: in reverse registration order, in buckets that are
// communicated whole. Params start at multiples of 64 elements; bucket ends are padded to lcm(data-parallel
// size, 128), so padding sits between params and inside shards, a shard can be all padding, and a param can
// straddle shards.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace gatherfuzz {

struct ParamSlot {
  uint32_t param = 0;  // index in the model
  uint32_t begin = 0;  // elements
  uint32_t count = 0;
  uint32_t bucket = 0;

  uint32_t end() const { return begin + count; }
};

struct Bucket {
  uint32_t begin = 0;  // elements
  uint32_t end = 0;
  std::vector<uint32_t> slots;  // indices into BufferLayout::slots

  uint32_t count() const { return end - begin; }
};

struct BufferLayout {
  std::vector<ParamSlot> slots;  // in buffer order
  std::vector<Bucket> buckets;
  uint32_t elements = 0;
};

struct LayoutParam {
  uint32_t param = 0;
  uint32_t count = 0;  // elements
};

// How params are cut into buckets: a bucket is closed once it holds `bucket_size` elements, padding between
// params included; or into at most `num_buckets` buckets of about equal size; or one bucket.
struct BucketRule {
  std::optional<uint32_t> bucket_size;
  std::optional<uint32_t> num_buckets;
};

// `registered` in registration order.
BufferLayout lay_out(const std::vector<LayoutParam>& registered, const BucketRule& rule,
                     uint32_t data_parallel_size);

// A piece of a parameter inside one rank's shard of a bucket, in elements.
struct ShardPiece {
  uint32_t param = 0;
  uint32_t in_shard = 0;  // first element, from the shard's begin
  uint32_t in_param = 0;  // first element, from the parameter's begin
  uint32_t count = 0;
};
std::vector<ShardPiece> shard_pieces(const BufferLayout& layout, uint32_t bucket, uint32_t rank,
                                     uint32_t ranks);

}  // namespace gatherfuzz
