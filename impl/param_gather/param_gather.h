// The param gather: bucket groups whose all-gather runs ahead of the forward pass, the pre-hook that waits
// for them, and what follows a gather (quantize into the weights, then clear the range: it is gradient memory
// again).
#pragma once

#include <algorithm>
#include <vector>

#include "impl/numerics/mx.h"
#include "impl/param_gather/buffers.h"

namespace gatherfuzz {

// Where one parameter's MXFP8 planes are. Unused for params whose weight is a view of the param buffer.
struct QuantizedWeight {
  View<e4m3> rowwise;
  View<e8m0> rowwise_scale;
  View<e4m3> columnwise;
  View<e8m0> columnwise_scale;
  int32_t rows = 0;
  int32_t cols = 0;
};

struct BucketRef {
  uint32_t buffer = 0;
  uint32_t bucket = 0;
};

// The streams of a rank and the events that order them.
struct Streams {
  StreamId compute = 0;
  StreamId comm = 0;
};

// Groups of buckets: one MXFP8 bucket each, and all bf16 buckets in the last of these, which is the first one
// gathered in forward. Without MXFP8 buckets each bucket is a group.
std::vector<std::vector<BucketRef>> group_buckets(const std::vector<BufferPair>& buffers);

struct ParamGatherOptions {
  bool overlap = false;
  ScaleRounding rounding = ScaleRounding::up;
};

class ParamGather {
 public:
  ParamGather(Runtime& runtime, Streams streams, const std::vector<BufferPair>& buffers,
              std::vector<QuantizedWeight> weights, ParamGatherOptions options);

  bool hooks_enabled() const { return hooks_enabled_; }
  void enable_forward_pre_hook() { hooks_enabled_ = true; }
  void disable_forward_pre_hook() { hooks_enabled_ = false; }

  // Before a module reads its params (indices in the model): its groups are gathered and post-processed, the
  // next group's gather is under way. Does nothing with hooks off or without overlap.
  void forward_pre_hook(const std::vector<int>& params);

  // All groups, synchronously, with post-processing; finishes a gather that is under way instead of starting
  // another.
  void force_param_sync();

  // After staging: every group must be gathered anew.
  void clear_dispatched();
  // What a replay of captured work leaves behind: all groups gathered and finished.
  void mark_all_finished();

  std::size_t groups() const { return groups_.size(); }
  std::size_t dispatched() const {
    return static_cast<std::size_t>(
        std::count_if(groups_.begin(), groups_.end(), [](const Group& g) { return g.dispatched; }));
  }
  bool any_outstanding() const {
    return std::any_of(groups_.begin(), groups_.end(), [](const Group& g) { return g.outstanding; });
  }

 private:
  struct Group {
    std::vector<BucketRef> buckets;
    bool dispatched = false;
    bool outstanding = false;  // under way: nobody has waited yet
    EventId done = 0;
  };

  void dispatch(Group& group);
  void finish(Group& group);
  void post_process(const Group& group);

  Runtime& runtime_;
  Streams streams_;
  const std::vector<BufferPair>& buffers_;
  std::vector<QuantizedWeight> weights_;
  ParamGatherOptions options_;
  std::vector<Group> groups_;
  std::vector<std::size_t> group_of_param_;
  EventId ready_ = 0;
  bool hooks_enabled_ = true;
};

}  // namespace gatherfuzz
