#include "impl/training/training_state.h"

#include "impl/kernels/host_copy.h"

namespace gatherfuzz {

namespace {

// Calls f(view, values) for each run of elements that lies together both in a shard and in a param.
template <class Params, class F>
void for_each_run(const Assembly& parts, Params& params, F&& f) {
  for (const Shard& shard : parts.optimizer->shards()) {
    for (const ShardPiece& piece : shard.pieces) {
      auto& param = params[piece.param];
      f(shard.main.slice(piece.in_shard, piece.count), param.main.data() + piece.in_param);
      f(shard.exp_avg.slice(piece.in_shard, piece.count), param.exp_avg.data() + piece.in_param);
      f(shard.exp_avg_sq.slice(piece.in_shard, piece.count), param.exp_avg_sq.data() + piece.in_param);
    }
  }
}

}  // namespace

std::vector<ParamState> make_param_states(const std::vector<ParamInfo>& params) {
  std::vector<ParamState> states;
  for (const ParamInfo& info : params) {
    const std::vector<float> zeros(static_cast<std::size_t>(info.size()));
    states.push_back({zeros, zeros, zeros});
  }
  return states;
}

void copy_shards_to_host(Runtime& runtime, const Assembly& parts, std::vector<ParamState>& params) {
  for_each_run(parts, params, [&](const View<float>& view, float* values) {
    runtime.launch(parts.streams.compute, CopyToHost{view, values});
  });
  runtime.synchronize_stream(parts.streams.compute);
}

void copy_shards_from_host(Runtime& runtime, const Assembly& parts, const std::vector<ParamState>& params) {
  for_each_run(parts, params, [&](const View<float>& view, const float* values) {
    runtime.launch(parts.streams.compute, CopyFromHost{view, values});
  });
  runtime.synchronize_stream(parts.streams.compute);
}

}  // namespace gatherfuzz
