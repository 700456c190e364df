// Flag sets: drawn group by group, then repaired.
#include <algorithm>
#include <cassert>

#include "properties/generator.h"

namespace gatherfuzz {

namespace {

constexpr int kMxBlock = 32;
constexpr int kSwarmPercent = 70;  // how often a group of flags leaves its defaults

void draw_recipe(Choices& c, Flags& f) {
  f.fp8_recipe = pick<Recipe>(c, {{Recipe::mxfp8, 76}, {Recipe::bf16, 14}, {Recipe::fp32, 10}}, "fp8_recipe");
  if (f.fp8_recipe != Recipe::mxfp8) return;
  f.fp8_param_gather = flip(c, 88, "fp8_param_gather");
  f.reuse_grad_buf_for_mxfp8_param_ag = f.fp8_param_gather && flip(c, 85, "reuse_grad_buf");
  if (flip(c, 20, "mx_scale_rounding")) f.mx_scale_rounding = ScaleRounding::floor;
  f.first_last_layers_bf16 = flip(c, 12, "first_last_layers_bf16");
}

void draw_communication(Choices& c, Flags& f) {
  f.data_parallel_size =
      pick<int>(c, {{2, 50}, {1, 13}, {3, 14}, {4, 12}, {5, 5}, {8, 6}}, "data_parallel_size");
  f.overlap_grad_reduce = flip(c, 80, "overlap_grad_reduce");
  f.overlap_param_gather = f.overlap_grad_reduce && flip(c, 85, "overlap_param_gather");
  if (!flip(c, kSwarmPercent, "swarm: communication")) return;
  f.grad_reduce_in_fp32 = flip(c, 50, "grad_reduce_in_fp32");
  f.average_in_collective = flip(c, 30, "average_in_collective");
  f.calculate_per_token_loss = !f.average_in_collective && flip(c, 18, "calculate_per_token_loss");
}

// Sizes around those of single params (32, 1024, 2048, 3072 elements), and odd ones.
void draw_buckets(Choices& c, Flags& f) {
  if (!flip(c, kSwarmPercent, "swarm: buckets")) return;
  switch (c.below(3, "bucket rule")) {
    case 0:
      f.num_buckets = pick<int>(c, {{2, 40}, {1, 10}, {3, 25}, {4, 15}, {7, 10}}, "num_buckets");
      break;
    case 1:
      f.bucket_size =
          pick<int>(c, {{1, 25}, {1000, 15}, {1024, 15}, {2048, 15}, {3073, 15}, {5000, 15}}, "bucket_size");
      break;
    default:
      break;
  }
  if (flip(c, 28, "registration_order")) f.registration_order = RegistrationOrder::shuffled;
}

void draw_graph(Choices& c, Flags& f) {
  f.cuda_graph_impl = pick<CudaGraphImpl>(
      c, {{CudaGraphImpl::none, 30}, {CudaGraphImpl::local, 50}, {CudaGraphImpl::full_iteration, 20}},
      "cuda_graph_impl");
  const bool scope_without_impl = f.cuda_graph_impl == CudaGraphImpl::none && flip(c, 15, "cuda_graph_scope");
  if (f.cuda_graph_impl == CudaGraphImpl::local || scope_without_impl) {
    f.cuda_graph_scope = CudaGraphScope::full_iteration;
  }
  if (f.cuda_graph_impl == CudaGraphImpl::none) return;
  f.cuda_graph_warmup_steps =
      pick<int>(c, {{2, 25}, {1, 20}, {0, 20}, {3, 20}, {4, 8}, {7, 5}, {30, 2}}, "cuda_graph_warmup_steps");
}

void draw_numbers(Choices& c, Flags& f) {
  f.seed = c.below(100000, "seed");
  if (!flip(c, kSwarmPercent, "swarm: numbers")) return;
  f.clip_grad = pick<double>(c, {{1.0, 60}, {0.0, 15}, {0.1, 15}, {100.0, 10}}, "clip_grad");
  if (flip(c, 55, "loss_scale")) {
    f.loss_scale =
        pick<double>(c, {{1024.0, 40}, {1.0, 20}, {65536.0, 20}, {3.0, 10}, {0.125, 10}}, "loss_scale");
  }
  f.check_for_nan_in_grad = flip(c, 30, "check_for_nan_in_grad");
  f.lr = pick<double>(c, {{0.001, 60}, {0.01, 20}, {0.0003, 15}, {0.0, 5}}, "lr");
  f.adam_beta1 = pick<double>(c, {{0.9, 85}, {0.0, 5}, {0.95, 10}}, "adam_beta1");
  f.adam_beta2 = pick<double>(c, {{0.999, 80}, {0.95, 20}}, "adam_beta2");
  f.adam_eps = pick<double>(c, {{1e-8, 90}, {1e-5, 10}}, "adam_eps");
}

void draw_optimizer(Choices& c, Flags& f) {
  if (!flip(c, 100 - kSwarmPercent, "swarm: optimizer")) return;
  f.weight_decay = pick<double>(c, {{0.1, 50}, {0.0, 30}, {0.01, 10}, {1.0, 10}}, "weight_decay");
  if (flip(c, 50, "lr_warmup_steps")) f.lr_warmup_steps = pick_between(c, 1, 6, "lr_warmup_steps");
  f.lr_decay_style = pick<LrDecayStyle>(
      c, {{LrDecayStyle::constant, 40}, {LrDecayStyle::cosine, 40}, {LrDecayStyle::linear, 20}},
      "lr_decay_style");
  if (f.lr_decay_style == LrDecayStyle::constant) return;
  f.lr_decay_steps = f.lr_warmup_steps + pick_between(c, 1, 20, "lr_decay_steps");
  if (flip(c, 50, "min_lr")) f.min_lr = f.lr / 10;
}

// Far above any finite norm, so that what is skipped can be planned.
void draw_skips(Choices& c, Flags& f) {
  if (!flip(c, 15, "grad_norm_skip_threshold")) return;
  f.grad_norm_skip_threshold =
      pick<double>(c, {{1e6, 60}, {1e9, 30}, {1e30, 10}}, "grad_norm_skip_threshold");
}

// micro_batch_size and seq_length together: 32 tokens are the least that MXFP8 takes.
void draw_tokens(Choices& c, Flags& f) {
  static constexpr int kTokens[][2] = {{1, 32}, {2, 16}, {4, 8}, {1, 64}, {3, 5}, {1, 8}};
  const bool any = f.fp8_recipe != Recipe::mxfp8;
  const size_t drawn =
      pick<size_t>(c, {{0, 65}, {1, 15}, {2, 10}, {3, 5}, {4, any ? 30 : 0}, {5, any ? 30 : 0}}, "tokens");
  f.micro_batch_size = kTokens[drawn][0];
  f.seq_length = kTokens[drawn][1];
}

void draw_shape(Choices& c, Flags& f) {
  const int odd = f.fp8_recipe == Recipe::mxfp8 ? 0 : 20;
  // Three are the fewest of which some stay MXFP8.
  f.num_layers = f.first_last_layers_bf16 ? pick<int>(c, {{3, 70}, {2, 20}, {1, 10}}, "num_layers")
                                          : pick<int>(c, {{2, 62}, {1, 23}, {3, 15}}, "num_layers");
  f.hidden_size = pick<int>(c, {{32, 88}, {64, 12}, {16, odd}, {48, odd}}, "hidden_size");
  f.ffn_hidden_size = pick<int>(c, {{32, 65}, {64, 28}, {96, 7}, {24, odd}}, "ffn_hidden_size");
  f.num_attention_heads = pick<int>(c, {{2, 50}, {1, 25}, {4, 25}}, "num_attention_heads");
  f.vocab_size = pick<int>(c, {{32, 45}, {16, 25}, {64, 20}, {17, 5}, {50, 5}}, "vocab_size");
  f.num_microbatches = pick<int>(c, {{1, 45}, {2, 35}, {3, 12}, {4, 8}}, "num_microbatches");
  if (f.data_parallel_size > 4 && f.num_microbatches > 2) f.num_microbatches = 2;
  f.untie_embeddings_and_output_weights = !flip(c, 12, "tied embeddings");
  draw_tokens(c, f);
}

void draw_schedule(Choices& c, Flags& f) {
  f.schedule = pick<Schedule>(
      c, {{Schedule::fifo, 94}, {Schedule::reverse, 2}, {Schedule::random, 2}, {Schedule::pct, 2}},
      "schedule");
  const bool seeded = f.schedule == Schedule::random || f.schedule == Schedule::pct;
  if (seeded) f.schedule_seed = c.below(1000, "schedule_seed");
}

void repair_lr_schedule(Flags& f) {
  if (f.lr_decay_style == LrDecayStyle::constant) {
    f.lr_decay_steps.reset();
    f.min_lr = 0.0;
    return;
  }
  f.lr_decay_steps = f.lr_decay_steps.value_or(20);
  f.lr_warmup_steps = std::min(f.lr_warmup_steps, *f.lr_decay_steps - 1);
  f.min_lr = std::min(f.min_lr, f.lr);
}

// Nothing of it may need an answer on the host.
bool may_capture_optimizer(const Flags& f) {
  return f.cuda_graph_impl != CudaGraphImpl::none && !skips_nonfinite(f);
}

int up_to_multiple(int value) {
  return (value + kMxBlock - 1) / kMxBlock * kMxBlock;
}

void repair_shape(Flags& f) {
  if (f.fp8_recipe == Recipe::mxfp8) {
    f.hidden_size = up_to_multiple(f.hidden_size);
    f.ffn_hidden_size = up_to_multiple(f.ffn_hidden_size);
    if (f.micro_batch_size * f.seq_length % kMxBlock != 0) f.seq_length = up_to_multiple(f.seq_length);
  }
  if (f.hidden_size % f.num_attention_heads != 0) f.num_attention_heads = 1;
  if (estimated_elements(f) <= kElementLimit) return;
  const Flags defaults;
  f.num_layers = defaults.num_layers;
  f.hidden_size = defaults.hidden_size;
  f.ffn_hidden_size = defaults.ffn_hidden_size;
  f.num_attention_heads = defaults.num_attention_heads;
  f.seq_length = defaults.seq_length;
  f.vocab_size = defaults.vocab_size;
  f.micro_batch_size = defaults.micro_batch_size;
}

}  // namespace

void repair_flags(Flags& f) {
  f.use_distributed_optimizer = true;
  f.fp8_param_gather &= f.fp8_recipe == Recipe::mxfp8;
  f.reuse_grad_buf_for_mxfp8_param_ag &= f.fp8_param_gather;
  f.first_last_layers_bf16 &= f.fp8_recipe == Recipe::mxfp8;
  f.overlap_param_gather &= f.overlap_grad_reduce;
  f.average_in_collective &= !f.calculate_per_token_loss;
  if (f.bucket_size) f.num_buckets.reset();
  if (f.cuda_graph_impl == CudaGraphImpl::local) f.cuda_graph_scope = CudaGraphScope::full_iteration;
  if (f.cuda_graph_impl == CudaGraphImpl::full_iteration) f.cuda_graph_scope = CudaGraphScope::empty;
  f.check_for_nan_in_grad &= !captures_full_iteration(f);
  f.optimizer_cuda_graph &= may_capture_optimizer(f);
  repair_lr_schedule(f);
  if (f.lr * f.weight_decay > 1.0) f.weight_decay = 0.0;
  repair_shape(f);
  assert(validate(f).empty());
}

Flags generate_flags(Choices& choices) {
  Flags flags;
  draw_recipe(choices, flags);
  draw_communication(choices, flags);
  draw_buckets(choices, flags);
  draw_graph(choices, flags);
  draw_numbers(choices, flags);
  draw_shape(choices, flags);
  draw_schedule(choices, flags);
  draw_optimizer(choices, flags);
  draw_skips(choices, flags);
  if (may_capture_optimizer(flags)) flags.optimizer_cuda_graph = flip(choices, 30, "optimizer_cuda_graph");
  repair_flags(flags);
  return flags;
}

}  // namespace gatherfuzz
