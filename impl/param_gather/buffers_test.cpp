// Where params and gradients lie in memory: both geometries of the shared buffer, and the bf16 pair.
#include "impl/param_gather/buffers.h"

#include <gtest/gtest.h>

#include "impl/param_gather/gather_bench_for_tests.h"

namespace gatherfuzz {
namespace {

GatherBench bench_of(bool share, DType grad_dtype, int ranks = 2) {
  GatherBenchOptions options;
  options.world.ranks = ranks;
  options.share = share;
  options.grad_dtype = grad_dtype;
  return GatherBench(options);
}

bool overlap(const Operand& a, const Operand& b) {
  return a.buffer == b.buffer && a.begin < b.end() && b.begin < a.end();
}

// For bf16 gradients the param range of a bucket is its gradient range, and both fill the buffer.
TEST(Buffers, SharedWithBf16GradsIsTheSameRange) {
  GatherBench bench = bench_of(true, DType::bf16);
  const BufferPair& pair = bench.ranks[0].buffers[0];
  ASSERT_TRUE(pair.mxfp8 && pair.shared);
  ASSERT_EQ(pair.layout.buckets.size(), 3u);
  uint32_t bytes = 0;
  for (uint32_t b = 0; b < 3; ++b) {
    const View<real> params = pair.bucket_params(b), grads = pair.bucket_grads(b);
    EXPECT_EQ(params.buffer, grads.buffer);
    EXPECT_EQ(params.begin, grads.begin);
    EXPECT_EQ(params.bytes, grads.bytes);
    bytes += params.bytes;
  }
  EXPECT_EQ(bytes, pair.grad_bytes);
}

// For FP32 gradients all params lie in the first half, bucket k's over other buckets' gradients.
TEST(Buffers, SharedWithFp32GradsOverlapsOtherBuckets) {
  GatherBench bench = bench_of(true, DType::f32);
  const BufferPair& pair = bench.ranks[0].buffers[0];
  ASSERT_TRUE(pair.mxfp8 && pair.shared);
  uint32_t at = 0;
  for (uint32_t b = 0; b < 3; ++b) {
    const View<real> params = pair.bucket_params(b);
    EXPECT_EQ(params.begin, at);
    EXPECT_EQ(2 * params.bytes, pair.bucket_grads(b).bytes);
    EXPECT_EQ(2 * params.begin, pair.bucket_grads(b).begin);
    at = params.end();
  }
  EXPECT_EQ(2 * at, pair.grad_bytes);
  // Buckets of 2048, 2048 and 1024 elements: param bytes 0, 4096, 8192, 10240; gradient bytes 0, 8192, 16384.
  EXPECT_TRUE(overlap(pair.bucket_params(1), pair.bucket_grads(0)));
  EXPECT_FALSE(overlap(pair.bucket_params(1), pair.bucket_grads(1)));
  EXPECT_TRUE(overlap(pair.bucket_params(2), pair.bucket_grads(1)));
  EXPECT_FALSE(overlap(pair.bucket_params(2), pair.bucket_grads(2)));
}

TEST(Buffers, NothingElseIsShared) {
  for (const bool share : {true, false}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      GatherBench bench = bench_of(share, dtype, 3);
      const std::vector<BufferPair>& pairs = bench.ranks[2].buffers;
      ASSERT_EQ(pairs.size(), 2u);
      EXPECT_EQ(pairs[0].shared, share);
      EXPECT_EQ(pairs[0].params == pairs[0].grads, share);
      EXPECT_FALSE(pairs[1].shared || pairs[1].mxfp8);
      EXPECT_NE(pairs[1].params, pairs[1].grads);
      EXPECT_NE(pairs[1].grads, pairs[0].grads);
      EXPECT_EQ(pairs[1].first_bucket, 3u);
      EXPECT_EQ(pairs[1].bucket_params(2).tag, 6u) << "number 5";
    }
  }
}

}  // namespace
}  // namespace gatherfuzz
