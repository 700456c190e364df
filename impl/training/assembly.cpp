#include "impl/training/assembly.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "impl/kernels/main_params.h"

namespace gatherfuzz {

ModelConfig model_config(const Flags& flags) {
  ModelConfig config;
  config.num_layers = flags.num_layers;
  config.hidden_size = flags.hidden_size;
  config.ffn_hidden_size = flags.ffn_hidden_size;
  config.num_attention_heads = flags.num_attention_heads;
  config.seq_length = flags.seq_length;
  config.vocab_size = flags.vocab_size;
  config.micro_batch_size = flags.micro_batch_size;
  config.mx = flags.fp8_recipe == Recipe::mxfp8;
  config.mx_params = model_is_mxfp8_gather(flags);
  config.first_last_layers_bf16 = flags.first_last_layers_bf16;
  config.tied_embeddings = !flags.untie_embeddings_and_output_weights;
  config.per_token_loss = flags.calculate_per_token_loss;
  config.activation = flags.fp8_recipe == Recipe::fp32 ? DType::f32 : DType::bf16;
  config.rounding = flags.mx_scale_rounding;
  return config;
}

std::vector<uint32_t> registration_order(const Flags& flags, std::size_t params) {
  std::vector<uint32_t> order(params);
  std::iota(order.begin(), order.end(), 0u);
  if (flags.registration_order == RegistrationOrder::execution) return order;
  // Neighbours end up far apart: every third one first, then the others.
  std::stable_sort(order.begin(), order.end(), [](uint32_t a, uint32_t b) { return a % 3 < b % 3; });
  return order;
}

Assembly::Assembly(Runtime& runtime, const Flags& flags, bool coarse, const Assembly* like) {
  streams.compute = runtime.create_stream("compute");
  streams.comm = runtime.create_stream("comm");
  const ModelConfig config = model_config(flags);
  params = model_params(config);

  ParamBufferPlan plan;
  for (const uint32_t p : registration_order(flags, params.size())) {
    const auto count = static_cast<uint32_t>(params[p].rows * params[p].cols);
    (params[p].mxfp8 && config.mx_params ? plan.mxfp8 : plan.whole).push_back({p, count});
  }
  // Without overlapped reduction there is one bucket, as nothing would be gained by more.
  if (flags.overlap_grad_reduce && flags.bucket_size)
    plan.rule.bucket_size = static_cast<uint32_t>(*flags.bucket_size);
  if (flags.overlap_grad_reduce && flags.num_buckets)
    plan.rule.num_buckets = static_cast<uint32_t>(*flags.num_buckets);
  plan.share_mxfp8 = flags.reuse_grad_buf_for_mxfp8_param_ag;
  plan.whole_dtype = config.activation;
  plan.grad_dtype = reduces_in_fp32(flags) ? DType::f32 : DType::bf16;
  buffers = make_buffers(runtime, plan);
  make_weights(runtime);

  gather =
      std::make_unique<ParamGather>(runtime, streams, buffers, weights,
                                    ParamGatherOptions{flags.overlap_param_gather, flags.mx_scale_rounding});
  grad_sync = std::make_unique<GradSync>(
      runtime, streams, buffers, params.size(),
      GradSyncOptions{flags.overlap_grad_reduce, flags.average_in_collective, flags.check_for_nan_in_grad,
                      flags.calculate_per_token_loss});
  OptimizerOptions options{flags.lr,        flags.adam_beta1, flags.adam_beta2,  flags.adam_eps,
                           flags.clip_grad, flags.loss_scale, flags.weight_decay};
  options.schedule = {flags.lr_warmup_steps, flags.lr_decay_style, flags.lr_decay_steps.value_or(0),
                      flags.min_lr};
  options.grad_norm_skip_threshold = flags.grad_norm_skip_threshold;
  if (flags.optimizer_cuda_graph) options.cuda_graph_warmup_steps = flags.cuda_graph_warmup_steps;
  for (const ParamInfo& info : params) options.decayed.push_back(is_matrix(info));
  optimizer = std::make_unique<DistributedOptimizer>(runtime, streams, buffers, std::move(options));
  model = std::make_unique<Model>(runtime, config, bindings());
  passes = std::make_unique<Passes>(*model, coarse, like != nullptr ? like->passes.get() : nullptr);
}

void Assembly::make_weights(Runtime& runtime) {
  weights.resize(params.size());
  for (const BufferPair& pair : buffers) {
    if (!pair.mxfp8) continue;
    for (const ParamSlot& slot : pair.layout.slots) {
      const ParamInfo& info = params[slot.param];
      QuantizedWeight& w = weights[slot.param];
      w.rows = info.rows;
      w.cols = info.cols;
      const BufferId data = runtime.allocate("mxfp8 weight", slot.count * 2, Fill::uninitialized);
      const uint32_t scales = slot.count / static_cast<uint32_t>(kMxBlock);
      const BufferId scale = runtime.allocate("mxfp8 weight scales", scales * 2, Fill::uninitialized);
      w.rowwise = make_view<e4m3>(data, 0, slot.count).tagged(slot.param);
      w.columnwise = make_view<e4m3>(data, slot.count, slot.count).tagged(slot.param);
      w.rowwise_scale = make_view<e8m0>(scale, 0, scales).tagged(slot.param);
      w.columnwise_scale = make_view<e8m0>(scale, scales, scales).tagged(slot.param);
    }
  }
}

std::vector<ParamBinding> Assembly::bindings() const {
  std::vector<ParamBinding> bound(params.size());
  for (const BufferPair& pair : buffers) {
    for (const ParamSlot& slot : pair.layout.slots) {
      ParamBinding& b = bound[slot.param];
      b.main_grad = grad_sync->main_grad(slot.param);
      if (!pair.mxfp8) {
        b.whole = pair.param_view(slot.begin, slot.count).tagged(slot.param);
        continue;
      }
      const QuantizedWeight& w = weights[slot.param];
      b.rowwise = w.rowwise;
      b.rowwise_scale = w.rowwise_scale;
      b.columnwise = w.columnwise;
      b.columnwise_scale = w.columnwise_scale;
    }
  }
  return bound;
}

bool is_matrix(const ParamInfo& info) {
  return info.rows > 1;
}

InitialDistribution initial_distribution(const ParamInfo& info) {
  if (!is_matrix(info)) return {0.0f, 1.0f};
  return {1.0f / std::sqrt(static_cast<float>(info.cols)), 0.0f};
}

void initialize_main_params(Runtime& runtime, const Flags& flags, const Assembly& assembly) {
  for (const Shard& shard : assembly.optimizer->shards()) {
    for (const ShardPiece& piece : shard.pieces) {
      const InitialDistribution initial = initial_distribution(assembly.params[piece.param]);
      InitMainParams op;
      op.target = shard.main.slice(piece.in_shard, piece.count);
      op.seed = flags.seed;
      op.param = piece.param;
      op.first_element = piece.in_param;
      op.constant = initial.constant;
      op.deviation = initial.deviation;
      runtime.launch(assembly.streams.compute, op);
    }
  }
}

}  // namespace gatherfuzz
