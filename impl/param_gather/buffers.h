// Pairs of param and grad buffers. For MXFP8 params with reuse_grad_buf_for_mxfp8_param_ag both are the same
// memory: all of it for bf16 grads; for FP32 grads the param view is bf16 over the first half, so a bucket's
// param bytes overlap other buckets' grad bytes. For bf16 params the param buffer is persistent and the
// weight is a view into it.
#pragma once

#include <vector>

#include "impl/param_gather/layout.h"
#include "impl/runtime/runtime.h"

namespace gatherfuzz {

struct BufferPair {
  BufferLayout layout;
  bool mxfp8 = false;   // its params are quantized after the gather
  bool shared = false;  // param and grad buffer are the same memory
  DType param_dtype = DType::bf16;
  DType grad_dtype = DType::f32;
  BufferId params = 0;
  BufferId grads = 0;
  uint32_t grad_bytes = 0;    // of the whole grad buffer
  uint32_t first_bucket = 0;  // number of its first bucket among all buffers' buckets

  View<real> param_view(uint32_t first, uint32_t count) const {
    return make_real_view(params, first * width(param_dtype), count, param_dtype);
  }
  View<real> grad_view(uint32_t first, uint32_t count) const {
    return make_real_view(grads, first * width(grad_dtype), count, grad_dtype);
  }
  // Views of a bucket carry its number as tag.
  View<real> bucket_params(uint32_t bucket) const {
    const Bucket& b = layout.buckets[bucket];
    return param_view(b.begin, b.count()).tagged(first_bucket + bucket);
  }
  View<real> bucket_grads(uint32_t bucket) const {
    const Bucket& b = layout.buckets[bucket];
    return grad_view(b.begin, b.count()).tagged(first_bucket + bucket);
  }
  // One rank's part of it.
  View<real> shard_grads(uint32_t bucket, uint32_t rank, uint32_t ranks) const {
    const uint32_t n = layout.buckets[bucket].count() / ranks;
    return bucket_grads(bucket).slice(rank * n, n);
  }

 private:
  static uint32_t width(DType dtype) { return static_cast<uint32_t>(size_of(dtype)); }
};

struct ParamBufferPlan {
  std::vector<LayoutParam> mxfp8;  // in registration order
  std::vector<LayoutParam> whole;
  BucketRule rule;
  bool share_mxfp8 = false;
  DType whole_dtype = DType::bf16;
  DType grad_dtype = DType::f32;
};

// Allocates the pairs that the plan needs, the MXFP8 pair first. Param and grad buffers start as zero.
std::vector<BufferPair> make_buffers(Runtime& runtime, const ParamBufferPlan& plan);

}  // namespace gatherfuzz
