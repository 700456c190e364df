// Which flag combinations are accepted. Each rule mirrors one of Megatron-Core or Megatron-Bridge, says that
// this implementation lacks something, or keeps memory small.
#include "impl/training/flags.h"

namespace gatherfuzz {

namespace {

constexpr int kMxBlock = 32;

bool is_mxfp8(const Flags& f) {
  return f.fp8_recipe == Recipe::mxfp8;
}

const FlagRule kRules[] = {
    {{{"reuse_grad_buf_for_mxfp8_param_ag", "fp8_param_gather"},
      "reusing the gradient memory needs MXFP8 params to gather through it"},
     [](const Flags& f) { return f.reuse_grad_buf_for_mxfp8_param_ag && !f.fp8_param_gather; }},
    {{{"reuse_grad_buf_for_mxfp8_param_ag", "fp8_recipe"}, "reusing the gradient memory needs recipe mxfp8"},
     [](const Flags& f) { return f.reuse_grad_buf_for_mxfp8_param_ag && !is_mxfp8(f); }},
    {{{"fp8_param_gather", "fp8_recipe"}, "gathering FP8 params needs recipe mxfp8"},
     [](const Flags& f) { return f.fp8_param_gather && !is_mxfp8(f); }},
    {{{"first_last_layers_bf16", "fp8_recipe"},
      "layers are kept in bf16 among MXFP8 ones: it needs recipe mxfp8"},
     [](const Flags& f) { return f.first_last_layers_bf16 && !is_mxfp8(f); }},
    {{{"fp8_param_gather", "use_distributed_optimizer"},
      "without the distributed optimizer nothing gathers params"},
     [](const Flags& f) { return f.fp8_param_gather && !f.use_distributed_optimizer; }},
    {{{"overlap_param_gather", "use_distributed_optimizer"},
      "only the distributed optimizer has shards to gather"},
     [](const Flags& f) { return f.overlap_param_gather && !f.use_distributed_optimizer; }},
    {{{"overlap_param_gather", "overlap_grad_reduce"},
      "overlapping the gather uses the buckets that overlapping the reduction builds"},
     [](const Flags& f) { return f.overlap_param_gather && !f.overlap_grad_reduce; }},
    {{{"use_distributed_optimizer"}, "only the distributed optimizer is implemented"},
     [](const Flags& f) { return !f.use_distributed_optimizer; }},
    {{{"calculate_per_token_loss", "average_in_collective"},
      "gradients that are divided by the number of tokens are added over ranks, not averaged"},
     [](const Flags& f) { return f.calculate_per_token_loss && f.average_in_collective; }},
    {{{"bucket_size", "num_buckets"}, "each of them decides where buckets end; set one"},
     [](const Flags& f) { return f.bucket_size && f.num_buckets; }},
    {{{"cuda_graph_impl", "cuda_graph_scope"},
      "local captures full iterations only (graphs of single layers are not implemented); set the scope"},
     [](const Flags& f) {
       return f.cuda_graph_impl == CudaGraphImpl::local &&
              f.cuda_graph_scope != CudaGraphScope::full_iteration;
     }},
    {{{"cuda_graph_impl", "cuda_graph_scope"}, "full_iteration captures everything; leave the scope empty"},
     [](const Flags& f) {
       return f.cuda_graph_impl == CudaGraphImpl::full_iteration &&
              f.cuda_graph_scope != CudaGraphScope::empty;
     }},
    {{{"check_for_nan_in_grad", "cuda_graph_impl"},
      "the check reads gradients on the host in the middle of what a full-iteration graph captures"},
     [](const Flags& f) { return f.check_for_nan_in_grad && captures_full_iteration(f); }},
    {{{"hidden_size", "num_attention_heads"}, "hidden_size must be divisible by the number of heads"},
     [](const Flags& f) { return f.hidden_size % f.num_attention_heads != 0; }},
    {{{"fp8_recipe", "hidden_size"}, "MXFP8 blocks need a hidden_size that is a multiple of 32"},
     [](const Flags& f) { return is_mxfp8(f) && f.hidden_size % kMxBlock != 0; }},
    {{{"fp8_recipe", "ffn_hidden_size"}, "MXFP8 blocks need an ffn_hidden_size that is a multiple of 32"},
     [](const Flags& f) { return is_mxfp8(f) && f.ffn_hidden_size % kMxBlock != 0; }},
    {{{"fp8_recipe", "micro_batch_size", "seq_length"},
      "columnwise MXFP8 blocks of activations need micro_batch_size * seq_length to be a multiple of 32"},
     [](const Flags& f) { return is_mxfp8(f) && (f.micro_batch_size * f.seq_length) % kMxBlock != 0; }},
    {{{"data_parallel_size", "num_layers", "hidden_size", "ffn_hidden_size", "vocab_size", "micro_batch_size",
       "seq_length", "num_attention_heads"},
      "the model and its activations on all ranks are larger than this tool holds (128 Mi elements)"},
     [](const Flags& f) { return estimated_elements(f) > kElementLimit; }},
    {{{"lr_decay_style", "lr_decay_steps"}, "a learning rate that falls needs a step at which it is down"},
     [](const Flags& f) { return f.lr_decay_style != LrDecayStyle::constant && !f.lr_decay_steps; }},
    {{{"lr_decay_style", "lr_decay_steps"}, "a constant learning rate has no step at which it is down"},
     [](const Flags& f) { return f.lr_decay_style == LrDecayStyle::constant && f.lr_decay_steps; }},
    {{{"lr_decay_style", "min_lr"}, "a constant learning rate never comes down to min_lr"},
     [](const Flags& f) { return f.lr_decay_style == LrDecayStyle::constant && f.min_lr > 0.0; }},
    {{{"lr_warmup_steps", "lr_decay_steps"}, "the warmup must be over before the decay is"},
     [](const Flags& f) { return f.lr_decay_steps && f.lr_warmup_steps >= *f.lr_decay_steps; }},
    {{{"lr", "min_lr"}, "the learning rate falls to min_lr and does not rise to it"},
     [](const Flags& f) { return f.min_lr > f.lr; }},
    {{{"lr", "weight_decay"}, "a step that takes more than the whole weight away makes weights grow"},
     [](const Flags& f) { return f.lr * f.weight_decay > 1.0; }},
    {{{"optimizer_cuda_graph", "cuda_graph_impl"},
      "the optimizer's graph needs an implementation that captures"},
     [](const Flags& f) { return f.optimizer_cuda_graph && f.cuda_graph_impl == CudaGraphImpl::none; }},
    {{{"optimizer_cuda_graph", "loss_scale"},
      "found-inf is read on the host in the middle of what the optimizer's graph captures"},
     [](const Flags& f) { return f.optimizer_cuda_graph && f.loss_scale; }},
    {{{"optimizer_cuda_graph", "grad_norm_skip_threshold"},
      "the norm is read on the host in the middle of what the optimizer's graph captures"},
     [](const Flags& f) { return f.optimizer_cuda_graph && f.grad_norm_skip_threshold; }},
};

}  // namespace

std::string FlagConflict::text() const {
  std::string result;
  for (std::string_view name : names) {
    if (!result.empty()) result += ", ";
    result += name;
  }
  return result + ": " + std::string(reason);
}

std::span<const FlagRule> flag_rules() {
  return kRules;
}

std::vector<FlagConflict> validate(const Flags& flags) {
  std::vector<FlagConflict> conflicts;
  for (const FlagRule& rule : kRules) {
    if (rule.broken(flags)) conflicts.push_back(rule.conflict);
  }
  return conflicts;
}

bool captures_full_iteration(const Flags& flags) {
  return flags.cuda_graph_impl == CudaGraphImpl::full_iteration ||
         (flags.cuda_graph_impl == CudaGraphImpl::local &&
          flags.cuda_graph_scope == CudaGraphScope::full_iteration);
}

bool model_is_mxfp8_gather(const Flags& flags) {
  const bool any_mxfp8_layer = !flags.first_last_layers_bf16 || flags.num_layers > 2;
  return is_mxfp8(flags) && flags.fp8_param_gather && any_mxfp8_layer;
}

bool skips_nonfinite(const Flags& flags) {
  return flags.loss_scale || flags.grad_norm_skip_threshold;
}

bool reduces_in_fp32(const Flags& flags) {
  return flags.grad_reduce_in_fp32 || flags.fp8_recipe == Recipe::fp32;
}

double estimated_elements(const Flags& flags) {
  const double h = flags.hidden_size, f = flags.ffn_hidden_size, v = flags.vocab_size, l = flags.num_layers;
  const double tokens = static_cast<double>(flags.micro_batch_size) * flags.seq_length;
  const double tables = flags.untie_embeddings_and_output_weights ? 2 : 1;
  const double params = l * (4 * h * h + 3 * f * h + 2 * h) + h + tables * v * h;
  const double scores = static_cast<double>(flags.num_attention_heads) * flags.seq_length;
  const double activations = tokens * (l * (9 * h + 3 * f + scores) + 2 * v);
  // Optimizer state (main params and two moments) exists once over all ranks.
  return 3 * params + flags.data_parallel_size * (2 * params + activations);
}

}  // namespace gatherfuzz
