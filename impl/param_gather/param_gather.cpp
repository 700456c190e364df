#include "impl/param_gather/param_gather.h"

#include "impl/kernels/fill.h"
#include "impl/kernels/quantize_weight.h"
#include "impl/runtime/collective.h"

namespace gatherfuzz {

std::vector<std::vector<BucketRef>> group_buckets(const std::vector<BufferPair>& buffers) {
  std::vector<std::vector<BucketRef>> groups;
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    for (uint32_t b = 0; b < buffers[i].layout.buckets.size(); ++b) {
      const bool rides_along = !buffers[i].mxfp8 && buffers[0].mxfp8;
      if (!rides_along) groups.emplace_back();
      groups.back().push_back({i, b});
    }
  }
  return groups;
}

ParamGather::ParamGather(Runtime& runtime, Streams streams, const std::vector<BufferPair>& buffers,
                         std::vector<QuantizedWeight> weights, ParamGatherOptions options)
    : runtime_(runtime),
      streams_(streams),
      buffers_(buffers),
      weights_(std::move(weights)),
      options_(options) {
  group_of_param_.resize(weights_.size());
  ready_ = runtime_.create_event();
  for (std::vector<BucketRef>& buckets : group_buckets(buffers_)) {
    for (const BucketRef& ref : buckets) {
      const BufferLayout& layout = buffers_[ref.buffer].layout;
      for (const uint32_t slot : layout.buckets[ref.bucket].slots)
        group_of_param_[layout.slots[slot].param] = groups_.size();
    }
    Group group;
    group.buckets = std::move(buckets);
    group.done = runtime_.create_event();
    groups_.push_back(std::move(group));
  }
}

void ParamGather::forward_pre_hook(const std::vector<int>& params) {
  if (!hooks_enabled_ || !options_.overlap) return;
  for (const int param : params) {
    const std::size_t index = group_of_param_[static_cast<std::size_t>(param)];
    Group& group = groups_[index];
    if (!group.dispatched) dispatch(group);
    if (!group.outstanding) continue;
    runtime_.wait(streams_.compute, group.done);
    group.outstanding = false;
    if (index > 0 && !groups_[index - 1].dispatched) dispatch(groups_[index - 1]);
    post_process(group);
  }
}

void ParamGather::force_param_sync() {
  for (std::size_t i = groups_.size(); i-- > 0;) {
    Group& group = groups_[i];
    if (!group.outstanding) dispatch(group);
    finish(group);
  }
}

void ParamGather::finish(Group& group) {
  runtime_.wait(streams_.compute, group.done);
  group.outstanding = false;
  post_process(group);
}

// A group of one rank gathers nothing, but is cast and cleared all the same.
void ParamGather::dispatch(Group& group) {
  runtime_.record(ready_, streams_.compute);
  runtime_.wait(streams_.comm, ready_);
  if (runtime_.world_size() > 1)
    for (const BucketRef& ref : group.buckets)
      runtime_.launch(streams_.comm, all_gather_in_place(buffers_[ref.buffer].bucket_params(ref.bucket),
                                                         runtime_.rank(), runtime_.world_size()));
  runtime_.record(group.done, streams_.comm);
  group.dispatched = true;
  group.outstanding = true;
}

void ParamGather::post_process(const Group& group) {
  for (const BucketRef& ref : group.buckets) {
    const BufferPair& pair = buffers_[ref.buffer];
    if (!pair.mxfp8) continue;  // the param range is the live weight
    for (const uint32_t index : pair.layout.buckets[ref.bucket].slots) {
      const ParamSlot& slot = pair.layout.slots[index];
      const QuantizedWeight& weight = weights_[slot.param];
      QuantizeWeight op;
      op.source = View<bf16>(pair.param_view(slot.begin, slot.count));
      op.source.tag = weight.rowwise.tag;
      op.rowwise = weight.rowwise;
      op.rowwise_scale = weight.rowwise_scale;
      op.columnwise = weight.columnwise;
      op.columnwise_scale = weight.columnwise_scale;
      op.rows = weight.rows;
      op.cols = weight.cols;
      op.rounding = options_.rounding;
      runtime_.launch(streams_.compute, op);
    }
    if (pair.shared)
      runtime_.launch(streams_.compute, ZeroParamRange{View<raw>(pair.bucket_params(ref.bucket))});
  }
}

void ParamGather::clear_dispatched() {
  for (Group& group : groups_) group.dispatched = false;
}

void ParamGather::mark_all_finished() {
  for (Group& group : groups_) {
    group.dispatched = true;
    group.outstanding = false;
  }
}

}  // namespace gatherfuzz
