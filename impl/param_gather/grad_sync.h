// The gradient reduction: a bucket group is scaled and reduce-scattered when all its gradients of the last
// microbatch are there (overlap), or at the end of the iteration. With per-token loss nothing is scaled;
// instead, all that is reduced is divided in the end by the number of tokens on all ranks.
#pragma once

#include <stdexcept>
#include <vector>

#include "impl/param_gather/param_gather.h"

namespace gatherfuzz {

// check_for_nan_in_grad found a gradient that is not finite, before the reduction.
struct NonfiniteGradient : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct GradSyncOptions {
  bool overlap = false;
  bool average_in_collective = false;
  bool check_for_nan = false;
  bool per_token_loss = false;
};

class GradSync {
 public:
  GradSync(Runtime& runtime, Streams streams, const std::vector<BufferPair>& buffers, std::size_t params,
           GradSyncOptions options);

  // Zeroes the grad memory and forgets what the last iteration left.
  void zero_grad_buffer();
  // One gradient of the last microbatch has been accumulated. In the very first batch the number of notices a
  // group gets is learned, and nothing starts early.
  void grad_ready(int param);
  // With per-token loss: nothing counted yet, and the tokens of one more microbatch.
  void clear_token_count();
  void count_tokens(const View<int32_t>& targets);
  // Starts what has not started and makes the compute stream wait for all of it; then the division.
  void finish_grad_sync();
  // What a replay of captured work leaves behind.
  void mark_all_finished();

  View<real> main_grad(uint32_t param) const { return main_grads_[param]; }
  // The number of tokens on all ranks, once the sync is finished. Empty without per-token loss.
  View<float> token_count() const { return token_count_; }

 private:
  struct Group {
    std::vector<BucketRef> buckets;
    int expected = 0;  // notices a batch; learned in the first
    int seen = 0;
    bool started = false;
    bool finished = false;
    EventId done = 0;
  };

  void start(Group& group);
  void check_finite(const Group& group);
  void divide_by_tokens();

  Runtime& runtime_;
  Streams streams_;
  const std::vector<BufferPair>& buffers_;
  GradSyncOptions options_;
  std::vector<Group> groups_;
  std::vector<std::size_t> group_of_param_;
  std::vector<View<real>> main_grads_;
  View<float> nan_flag_;
  View<float> token_count_;
  EventId ready_ = 0;
  EventId counted_ = 0;
  bool divided_ = false;  // by the number of tokens, in this iteration
  bool first_batch_ = true;
};

}  // namespace gatherfuzz
