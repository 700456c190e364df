#include "impl/param_gather/grad_sync.h"

#include <string>

#include "impl/kernels/fill.h"
#include "impl/kernels/gradients.h"
#include "impl/kernels/token_count.h"
#include "impl/runtime/collective.h"

namespace gatherfuzz {

GradSync::GradSync(Runtime& runtime, Streams streams, const std::vector<BufferPair>& buffers,
                   std::size_t params, GradSyncOptions options)
    : runtime_(runtime), streams_(streams), buffers_(buffers), options_(options) {
  group_of_param_.resize(params);
  main_grads_.resize(params);
  ready_ = runtime_.create_event();
  if (options_.check_for_nan)
    nan_flag_ = make_view<float>(runtime_.allocate("nan flag", 4, Fill::zero), 0, 1);
  if (options_.per_token_loss) {
    token_count_ = make_view<float>(runtime_.allocate("token count", 4, Fill::zero), 0, 1);
    counted_ = runtime_.create_event();
  }
  for (std::vector<BucketRef>& buckets : group_buckets(buffers_)) {
    for (const BucketRef& ref : buckets) {
      const BufferPair& pair = buffers_[ref.buffer];
      for (const uint32_t index : pair.layout.buckets[ref.bucket].slots) {
        const ParamSlot& slot = pair.layout.slots[index];
        group_of_param_[slot.param] = groups_.size();
        main_grads_[slot.param] = pair.grad_view(slot.begin, slot.count).tagged(slot.param);
      }
    }
    Group group;
    group.buckets = std::move(buckets);
    group.done = runtime_.create_event();
    groups_.push_back(std::move(group));
  }
}

void GradSync::zero_grad_buffer() {
  for (const BufferPair& pair : buffers_)
    runtime_.launch(streams_.compute, ZeroGradBuffer{make_view<uint8_t>(pair.grads, 0, pair.grad_bytes)});
  for (Group& group : groups_) {
    if (first_batch_) group.expected = 0;  // a batch that was refused teaches nothing
    group.seen = 0;
    group.started = false;
    group.finished = false;
  }
  divided_ = false;
}

void GradSync::grad_ready(int param) {
  Group& group = groups_[group_of_param_[static_cast<std::size_t>(param)]];
  ++group.seen;
  if (first_batch_) {
    ++group.expected;
  } else if (options_.overlap && group.seen == group.expected) {
    start(group);
  }
}

void GradSync::start(Group& group) {
  if (options_.check_for_nan) check_finite(group);
  const int ranks = runtime_.world_size();
  for (const BucketRef& ref : group.buckets) {
    if (ranks == 1 || options_.average_in_collective || options_.per_token_loss) continue;
    ScaleGradients op;
    op.values = buffers_[ref.buffer].bucket_grads(ref.bucket);
    op.factor.value = 1.0f / static_cast<float>(ranks);
    runtime_.launch(streams_.compute, op);
  }
  runtime_.record(ready_, streams_.compute);
  runtime_.wait(streams_.comm, ready_);
  const Reduction reduction = options_.average_in_collective ? Reduction::average : Reduction::sum;
  if (ranks > 1)
    for (const BucketRef& ref : group.buckets)
      runtime_.launch(streams_.comm, reduce_scatter_in_place(buffers_[ref.buffer].bucket_grads(ref.bucket),
                                                             runtime_.rank(), ranks, reduction));
  runtime_.record(group.done, streams_.comm);
  group.started = true;
}

void GradSync::check_finite(const Group& group) {
  runtime_.launch(streams_.compute, ZeroScalars{nan_flag_});
  for (const BucketRef& ref : group.buckets)
    runtime_.launch(streams_.compute,
                    CheckGradients{buffers_[ref.buffer].bucket_grads(ref.bucket), nan_flag_});
  if (runtime_.read(streams_.compute, nan_flag_).flagged())
    throw NonfiniteGradient("check_for_nan_in_grad: rank " + std::to_string(runtime_.rank()) +
                            " found a gradient that is not finite before the reduction");
}

void GradSync::clear_token_count() {
  runtime_.launch(streams_.compute, ZeroScalars{token_count_});
}

void GradSync::count_tokens(const View<int32_t>& targets) {
  runtime_.launch(streams_.compute, CountTokens{targets, token_count_});
}

void GradSync::divide_by_tokens() {
  const auto ranks = static_cast<uint32_t>(runtime_.world_size());
  if (ranks > 1) {
    runtime_.record(ready_, streams_.compute);
    runtime_.wait(streams_.comm, ready_);
    AllReduce sum;
    sum.values = View<raw>(token_count_);
    sum.count = 1;
    runtime_.launch(streams_.comm, sum);
    runtime_.record(counted_, streams_.comm);
    runtime_.wait(streams_.compute, counted_);
  }
  for (const BufferPair& pair : buffers_)
    for (uint32_t b = 0; b < pair.layout.buckets.size(); ++b)
      runtime_.launch(
          streams_.compute,
          DivideByTokens{pair.shard_grads(b, static_cast<uint32_t>(runtime_.rank()), ranks), token_count_});
}

void GradSync::finish_grad_sync() {
  for (Group& group : groups_) {
    if (group.finished) continue;
    if (!group.started) start(group);
    runtime_.wait(streams_.compute, group.done);
    group.finished = true;
  }
  if (options_.per_token_loss && !divided_) divide_by_tokens();
  divided_ = true;
  first_batch_ = false;
}

void GradSync::mark_all_finished() {
  for (Group& group : groups_) {
    group.started = true;
    group.finished = true;
  }
  divided_ = true;
  first_batch_ = false;
}

}  // namespace gatherfuzz
