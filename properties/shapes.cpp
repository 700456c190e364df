#include "properties/shapes.h"

#include <algorithm>
#include <array>

#include "impl/param_gather/layout.h"
#include "impl/training/assembly.h"

namespace gatherfuzz {

namespace {

// The layouts of the MXFP8 and of the other params, as a run with these flags has them.
std::array<BufferLayout, 2> layouts_of(const Flags& flags) {
  const ModelConfig config = model_config(flags);
  const std::vector<ParamInfo> params = model_params(config);
  std::array<std::vector<LayoutParam>, 2> registered;
  for (const uint32_t p : registration_order(flags, params.size())) {
    const bool mxfp8 = params[p].mxfp8 && config.mx_params;
    registered[mxfp8 ? 0 : 1].push_back({p, static_cast<uint32_t>(params[p].size())});
  }
  BucketRule rule;
  if (flags.overlap_grad_reduce && flags.bucket_size)
    rule.bucket_size = static_cast<uint32_t>(*flags.bucket_size);
  if (flags.overlap_grad_reduce && flags.num_buckets)
    rule.num_buckets = static_cast<uint32_t>(*flags.num_buckets);
  const auto ranks = static_cast<uint32_t>(flags.data_parallel_size);
  return {lay_out(registered[0], rule, ranks), lay_out(registered[1], rule, ranks)};
}

template <class Predicate>
bool any_bucket(const Flags& flags, Predicate predicate) {
  for (const BufferLayout& layout : layouts_of(flags)) {
    for (const Bucket& bucket : layout.buckets) {
      if (predicate(layout, bucket)) return true;
    }
  }
  return false;
}

// What share of its bucket a rank owns, in elements.
uint32_t shard_size(const Bucket& bucket, const Flags& flags) {
  return bucket.count() / static_cast<uint32_t>(flags.data_parallel_size);
}

bool param_over_two_shards(const Flags& flags) {
  return any_bucket(flags, [&](const BufferLayout& layout, const Bucket& bucket) {
    const uint32_t shard = shard_size(bucket, flags);
    return std::any_of(bucket.slots.begin(), bucket.slots.end(), [&](uint32_t index) {
      const ParamSlot& slot = layout.slots[index];
      return (slot.begin - bucket.begin) / shard != (slot.end() - 1 - bucket.begin) / shard;
    });
  });
}

bool shard_inside_param(const Flags& flags) {
  return any_bucket(flags, [&](const BufferLayout& layout, const Bucket& bucket) {
    const uint32_t shard = shard_size(bucket, flags);
    return std::any_of(bucket.slots.begin(), bucket.slots.end(), [&](uint32_t index) {
      const ParamSlot& slot = layout.slots[index];
      const uint32_t begin = slot.begin - bucket.begin, end = slot.end() - bucket.begin;
      const uint32_t next = begin / shard * shard + shard;  // the first shard that starts after the param
      return next > begin && next + shard < end;
    });
  });
}

bool all_padding_shard(const Flags& flags) {
  return any_bucket(flags, [&](const BufferLayout& layout, const Bucket& bucket) {
    const uint32_t used = layout.slots[bucket.slots.back()].end() - bucket.begin;
    return bucket.count() - used >= shard_size(bucket, flags);
  });
}

bool one_param_bucket(const Flags& flags) {
  return any_bucket(flags,
                    [](const BufferLayout&, const Bucket& bucket) { return bucket.slots.size() == 1; });
}

bool several_mxfp8_buckets(const Flags& flags) {
  return layouts_of(flags)[0].buckets.size() > 1;
}

bool fp32_half_view(const Flags& flags) {
  return flags.reuse_grad_buf_for_mxfp8_param_ag && reduces_in_fp32(flags);
}

constexpr InterestingShape kShapes[] = {
    {"param over two shards", param_over_two_shards},
    {"shard inside a param", shard_inside_param},
    {"shard that is all padding", all_padding_shard},
    {"bucket of one param", one_param_bucket},
    {"several MXFP8 buckets", several_mxfp8_buckets},
    {"FP32 gradients, params in the first half", fp32_half_view},
    {"params used out of registration order",
     [](const Flags& f) { return f.registration_order == RegistrationOrder::shuffled; }},
    {"one rank", [](const Flags& f) { return f.data_parallel_size == 1; }},
    {"three ranks", [](const Flags& f) { return f.data_parallel_size == 3; }},
    {"more than four ranks", [](const Flags& f) { return f.data_parallel_size > 4; }},
    {"synchronous gather with reuse",
     [](const Flags& f) { return f.reuse_grad_buf_for_mxfp8_param_ag && !f.overlap_param_gather; }},
    {"tied embeddings", [](const Flags& f) { return !f.untie_embeddings_and_output_weights; }},
    {"bf16 layers around MXFP8 ones",
     [](const Flags& f) { return f.first_last_layers_bf16 && f.num_layers > 2; }},
    {"MXFP8 through a buffer of its own",
     [](const Flags& f) { return f.fp8_param_gather && !f.reuse_grad_buf_for_mxfp8_param_ag; }},
    {"MXFP8 quantized on use",
     [](const Flags& f) { return f.fp8_recipe == Recipe::mxfp8 && !f.fp8_param_gather; }},
    {"capture without warmup",
     [](const Flags& f) { return captures_full_iteration(f) && f.cuda_graph_warmup_steps == 0; }},
    {"schedule other than fifo", [](const Flags& f) { return f.schedule != Schedule::fifo; }},
};

}  // namespace

std::span<const InterestingShape> interesting_shapes() {
  return kShapes;
}

}  // namespace gatherfuzz
