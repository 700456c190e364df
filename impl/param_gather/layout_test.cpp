// Layouts against the rules that layout.h states, over drawn params, and the cases that these rules are for.
#include "impl/param_gather/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace gatherfuzz {
namespace {

std::vector<LayoutParam> params_of(const std::vector<uint32_t>& counts) {
  std::vector<LayoutParam> params;
  for (const uint32_t count : counts) params.push_back({static_cast<uint32_t>(params.size()), count});
  return params;
}

// The layout once more, element by element: owner[i] is the param that element i belongs to, or -1.
struct NaiveLayout {
  std::vector<int> owner;
  std::vector<std::size_t> ends;  // of buckets
};

NaiveLayout naive(const std::vector<uint32_t>& counts, const BucketRule& rule, uint32_t ranks) {
  uint64_t total = 0;
  for (const uint32_t count : counts) total += count;
  NaiveLayout out;
  std::size_t begin = 0;
  uint64_t held = 0;
  const auto pad = [&out](std::size_t multiple) {
    while (out.owner.size() % multiple != 0) out.owner.push_back(-1);
  };
  const auto close = [&] {
    while (out.owner.size() % 128 != 0 || out.owner.size() % ranks != 0) out.owner.push_back(-1);
    out.ends.push_back(begin = out.owner.size());
    held = 0;
  };
  for (std::size_t p = counts.size(); p-- > 0;) {
    pad(64);
    out.owner.insert(out.owner.end(), counts[p], static_cast<int>(p));
    held += counts[p];
    const bool full = rule.bucket_size   ? out.owner.size() - begin >= *rule.bucket_size
                      : rule.num_buckets ? held * *rule.num_buckets >= total
                                         : false;
    if (full) close();
  }
  if (out.owner.size() > begin) close();
  return out;
}

// Every element of every param is in exactly one bucket, where the slots say, and in one shard piece.
std::size_t expect_layout(const BufferLayout& layout, const std::vector<uint32_t>& counts,
                          const BucketRule& rule, uint32_t ranks) {
  const NaiveLayout expected = naive(counts, rule, ranks);
  std::vector<int> owner(layout.elements, -1);
  EXPECT_EQ(layout.slots.size(), counts.size());
  for (std::size_t i = 0; i < layout.slots.size(); ++i) {
    const ParamSlot& slot = layout.slots[i];
    EXPECT_EQ(slot.param, counts.size() - 1 - i) << "reverse registration order";
    EXPECT_EQ(slot.begin % 64, 0u);
    EXPECT_EQ(slot.count, counts[slot.param]);
    const Bucket& bucket = layout.buckets[slot.bucket];
    EXPECT_TRUE(bucket.begin <= slot.begin && slot.end() <= bucket.end);
    for (uint32_t e = slot.begin; e < slot.end(); ++e) owner[e] = static_cast<int>(slot.param);
  }
  EXPECT_EQ(owner, expected.owner);
  EXPECT_EQ(layout.buckets.size(), expected.ends.size());

  std::vector<std::vector<int>> seen(counts.size());
  for (std::size_t p = 0; p < counts.size(); ++p) seen[p].resize(counts[p]);
  uint32_t begin = 0;
  std::size_t slots = 0;
  for (uint32_t b = 0; b < layout.buckets.size(); ++b) {
    const Bucket& bucket = layout.buckets[b];
    EXPECT_EQ(bucket.begin, begin);
    EXPECT_EQ(bucket.end, expected.ends[b]);
    EXPECT_EQ(bucket.end % std::lcm(ranks, 128u), 0u);
    EXPECT_FALSE(bucket.slots.empty());
    begin = bucket.end;
    for (const uint32_t slot : bucket.slots) EXPECT_EQ(slot, slots++);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const uint32_t shard = bucket.begin + rank * (bucket.count() / ranks);
      for (const ShardPiece& piece : shard_pieces(layout, b, rank, ranks)) {
        EXPECT_GT(piece.count, 0u);
        EXPECT_LE(piece.in_shard + piece.count, bucket.count() / ranks);
        for (uint32_t i = 0; i < piece.count; ++i) {
          EXPECT_EQ(expected.owner[shard + piece.in_shard + i], static_cast<int>(piece.param));
          ++seen[piece.param][piece.in_param + i];
        }
      }
    }
  }
  EXPECT_EQ(begin, layout.elements);
  std::size_t elements = 0;
  for (const std::vector<int>& param : seen) {
    EXPECT_EQ(std::count(param.begin(), param.end(), 1), static_cast<std::ptrdiff_t>(param.size()));
    elements += param.size();
  }
  return elements;
}

TEST(Layout, DrawnParamsFollowTheRules) {
  std::mt19937 engine(5);
  const auto below = [&engine](uint32_t limit) { return static_cast<uint32_t>(engine() % limit); };
  std::size_t elements = 0, buckets = 0;
  for (int round = 0; round < 400 && !testing::Test::HasFailure(); ++round) {
    std::vector<uint32_t> counts(1 + below(12));
    for (uint32_t& count : counts) count = below(3) == 0 ? 64 * (1 + below(8)) : 1 + below(700);
    BucketRule rule;
    if (round % 3 == 1) rule.bucket_size = 1 + below(1500);
    if (round % 3 == 2) rule.num_buckets = 1 + below(10);
    const uint32_t ranks = 1 + below(8);
    SCOPED_TRACE("round " + std::to_string(round) + ", ranks " + std::to_string(ranks));
    const BufferLayout layout = lay_out(params_of(counts), rule, ranks);
    EXPECT_LE(layout.buckets.size(), rule.num_buckets.value_or(1000));
    elements += expect_layout(layout, counts, rule, ranks);
    buckets += layout.buckets.size();
  }
  EXPECT_GT(elements, 500000u);
  EXPECT_GT(buckets, 800u);
}

TEST(Layout, ParamOverAShardBoundary) {
  const BufferLayout layout = lay_out(params_of({100, 200}), {}, 3);
  // Param 1 at 0..200, param 0 at 256..356, padded to 384; shards of 128.
  ASSERT_EQ(layout.elements, 384u);
  const auto first = shard_pieces(layout, 0, 0, 3), second = shard_pieces(layout, 0, 1, 3);
  ASSERT_EQ(first.size() + second.size(), 2u);
  EXPECT_EQ(first[0].param, 1u);
  EXPECT_EQ(first[0].count, 128u);
  EXPECT_EQ(second[0].in_param, 128u);
  EXPECT_EQ(second[0].in_shard, 0u);
  EXPECT_EQ(second[0].count, 72u);
}

TEST(Layout, ShardThatIsAllPadding) {
  const BufferLayout layout = lay_out(params_of({60}), {}, 8);
  ASSERT_EQ(layout.elements, 128u);
  EXPECT_EQ(shard_pieces(layout, 0, 3, 8).size(), 1u);
  EXPECT_EQ(shard_pieces(layout, 0, 3, 8)[0].count, 12u);
  for (uint32_t rank = 4; rank < 8; ++rank) EXPECT_TRUE(shard_pieces(layout, 0, rank, 8).empty()) << rank;
}

TEST(Layout, BucketSizeOfOneGivesABucketToEachParam) {
  const BufferLayout layout = lay_out(params_of({1, 128, 129}), {1, std::nullopt}, 5);
  ASSERT_EQ(layout.buckets.size(), 3u);
  EXPECT_EQ(layout.elements, 3u * 640);
  for (const Bucket& bucket : layout.buckets) EXPECT_EQ(bucket.slots.size(), 1u);
}

// Padding after each of many small params filled buckets early, so that there were ten of them.
TEST(Layout, NumBucketsIsNotExceededBySmallParams) {
  const std::vector<uint32_t> counts(20, 3);
  const BufferLayout layout = lay_out(params_of(counts), {std::nullopt, 4}, 2);
  ASSERT_EQ(layout.buckets.size(), 4u);
  for (const Bucket& bucket : layout.buckets) EXPECT_EQ(bucket.slots.size(), 5u);
}

// Padding made the bucket longer than all params together, and a second one followed.
TEST(Layout, WithoutARuleThereIsOneBucket) {
  const BufferLayout layout = lay_out(params_of({3, 3, 3, 3}), {}, 2);
  ASSERT_EQ(layout.buckets.size(), 1u);
  EXPECT_EQ(layout.buckets[0].slots.size(), 4u);
  EXPECT_EQ(layout.elements, 256u);
}

TEST(Layout, MoreBucketsThanParamsAreNotMade) {
  const BufferLayout layout = lay_out(params_of({10, 10, 10}), {std::nullopt, 64}, 1);
  ASSERT_EQ(layout.buckets.size(), 3u);
}

TEST(Layout, NothingToLayOut) {
  const BufferLayout layout = lay_out({}, {}, 3);
  EXPECT_EQ(layout.elements, 0u);
  EXPECT_TRUE(layout.buckets.empty());
}

}  // namespace
}  // namespace gatherfuzz
