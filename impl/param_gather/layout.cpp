#include "impl/param_gather/layout.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace gatherfuzz {

namespace {

constexpr uint32_t kParamAlignment = 64;
constexpr uint32_t kBucketAlignment = 128;

uint32_t round_up(uint32_t value, uint32_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

BufferLayout lay_out(const std::vector<LayoutParam>& registered, const BucketRule& rule,
                     uint32_t data_parallel_size) {
  const uint32_t bucket_alignment = std::lcm(data_parallel_size, kBucketAlignment);
  uint64_t total = 0;
  for (const LayoutParam& p : registered) total += p.count;
  uint64_t limit = total + 1;  // one bucket
  if (rule.bucket_size) limit = *rule.bucket_size;
  if (rule.num_buckets) limit = (total + *rule.num_buckets - 1) / *rule.num_buckets;

  BufferLayout layout;
  layout.slots.reserve(registered.size());
  uint32_t at = 0;
  uint64_t in_params = 0;  // elements of the bucket without padding
  Bucket bucket;
  auto close = [&] {
    at = round_up(at, bucket_alignment);
    bucket.end = at;
    layout.buckets.push_back(std::move(bucket));
    bucket = Bucket{};
    bucket.begin = at;
    in_params = 0;
  };
  for (auto p = registered.rbegin(); p != registered.rend(); ++p) {
    at = round_up(at, kParamAlignment);
    bucket.slots.push_back(static_cast<uint32_t>(layout.slots.size()));
    layout.slots.push_back({p->param, at, p->count, static_cast<uint32_t>(layout.buckets.size())});
    at += p->count;
    in_params += p->count;
    // Padding counts against a size alone: it must not add to the number of buckets.
    if ((rule.bucket_size ? at - bucket.begin : in_params) >= limit) close();
  }
  if (!bucket.slots.empty()) close();
  layout.elements = at;
  return layout;
}

std::vector<ShardPiece> shard_pieces(const BufferLayout& layout, uint32_t bucket, uint32_t rank,
                                     uint32_t ranks) {
  const Bucket& b = layout.buckets[bucket];
  const uint32_t shard = b.count() / ranks;
  const uint32_t begin = b.begin + rank * shard;
  const uint32_t end = begin + shard;
  std::vector<ShardPiece> pieces;
  for (const uint32_t index : b.slots) {
    const ParamSlot& slot = layout.slots[index];
    const uint32_t first = std::max(slot.begin, begin);
    const uint32_t last = std::min(slot.end(), end);
    if (first < last) pieces.push_back({slot.param, first - begin, first - slot.begin, last - first});
  }
  return pieces;
}

}  // namespace gatherfuzz
