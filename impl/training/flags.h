// The flags of a training run, spelled as Megatron users know them: typed values, one table that names,
// bounds and prints them, and the rules that say which combinations are accepted.
//
// A value outside its range is an error of whoever wrote it (set_flag); values that exclude each other are a
// refusal (validate). Ranges are kept small enough that no accepted flag set allocates anything huge.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "impl/numerics/mx.h"
#include "impl/optimizer/lr_schedule.h"
#include "impl/runtime/schedule.h"

namespace gatherfuzz {

enum class Recipe : uint8_t { fp32, bf16, mxfp8 };
enum class CudaGraphImpl : uint8_t { none, local, full_iteration };
enum class CudaGraphScope : uint8_t { empty, full_iteration };
// The order in which a layer's parameters are registered: as the forward pass uses them, or not.
enum class RegistrationOrder : uint8_t { execution, shuffled };

// The initial values are the defaults that program format v1 pins.
struct Flags {
  Recipe fp8_recipe = Recipe::bf16;
  bool fp8_param_gather = false;
  bool reuse_grad_buf_for_mxfp8_param_ag = false;
  bool overlap_param_gather = false;
  bool overlap_grad_reduce = false;
  bool grad_reduce_in_fp32 = false;
  bool average_in_collective = false;
  bool calculate_per_token_loss = false;
  std::optional<int> bucket_size;  // elements
  std::optional<int> num_buckets;
  CudaGraphImpl cuda_graph_impl = CudaGraphImpl::none;
  CudaGraphScope cuda_graph_scope = CudaGraphScope::empty;
  int cuda_graph_warmup_steps = 3;  // calls of forward_backward before the capture
  int num_microbatches = 1;
  int data_parallel_size = 1;
  double clip_grad = 1.0;  // 0: no clipping
  std::optional<double> loss_scale;
  bool check_for_nan_in_grad = false;
  bool use_distributed_optimizer = true;
  bool untie_embeddings_and_output_weights = true;
  ScaleRounding mx_scale_rounding = ScaleRounding::up;
  bool first_last_layers_bf16 = false;
  int num_layers = 2;
  int hidden_size = 64;
  int ffn_hidden_size = 128;
  int num_attention_heads = 4;
  int seq_length = 32;
  int vocab_size = 128;
  int micro_batch_size = 1;
  RegistrationOrder registration_order = RegistrationOrder::execution;
  uint64_t seed = 0;
  double lr = 0.001;
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;
  double adam_eps = 1e-8;
  double weight_decay = 0.0;
  int lr_warmup_steps = 0;
  LrDecayStyle lr_decay_style = LrDecayStyle::constant;
  std::optional<int> lr_decay_steps;  // warmup included
  double min_lr = 0.0;
  std::optional<double> grad_norm_skip_threshold;
  bool optimizer_cuda_graph = false;
  Schedule schedule = Schedule::fifo;
  uint64_t schedule_seed = 0;

  bool operator==(const Flags&) const = default;
};

enum class FlagKind : uint8_t { toggle, choice, whole, real };

// Unset, a toggle, choice index or whole number, or a real number.
using FlagValue = std::variant<std::monostate, uint64_t, double>;

// One row of the table: everything that parsing, printing, documentation and generators need to know of a
// flag.
struct FlagInfo {
  std::string_view name;
  FlagKind kind;
  bool may_be_unset;                          // written `unset`
  double least, most;                         // whole and real; most of a full 64-bit seed is 2^64
  std::span<const std::string_view> choices;  // choice
  std::string_view doc;
  FlagValue (*get)(const Flags&);
  void (*set)(Flags&, const FlagValue&);

  std::string text(const Flags& flags) const;
  std::string default_text() const { return text(Flags{}); }
  // What a value may be: "true or false", "1 to 16", "unset, or 1 to 64".
  std::string expected() const;
};

// All flags, in the order in which they are printed.
std::span<const FlagInfo> flag_table();
const FlagInfo* find_flag(std::string_view name);
std::span<const std::string_view> flag_names();

// Sets a flag from text. Returns an empty string, or what was expected, what was found and the nearest name;
// then `flags` is unchanged.
std::string set_flag(Flags& flags, std::string_view name, std::string_view value);

struct FlagConflict {
  std::vector<std::string_view> names;  // the flags that cannot stay as they are together
  std::string_view reason;

  // "reuse_grad_buf_for_mxfp8_param_ag, fp8_param_gather: the reason".
  std::string text() const;
};

// One rule: `broken` says whether a flag set breaks it.
struct FlagRule {
  FlagConflict conflict;
  bool (*broken)(const Flags&);
};
std::span<const FlagRule> flag_rules();

// Every broken rule, in the order of flag_rules(); empty for an accepted flag set.
std::vector<FlagConflict> validate(const Flags& flags);

// True if forward and backward of all microbatches are captured as one graph. With cuda_graph_impl `none` the
// scope has no effect.
bool captures_full_iteration(const Flags& flags);
// True if there are weights that are kept as MXFP8 and gathered by the step. With first_last_layers_bf16 and
// at most two layers there are none, whatever fp8_param_gather says, as in Megatron-Core.
bool model_is_mxfp8_gather(const Flags& flags);
// The dtype of gradients and of their reduction: recipe fp32 always reduces in FP32.
bool reduces_in_fp32(const Flags& flags);
// True if a step with gradients that are not finite is skipped, on every rank.
bool skips_nonfinite(const Flags& flags);
// A rough count of the elements that all ranks together hold (parameters, their optimizer state counted once,
// and activations of one microbatch); the rule on size compares it with kElementLimit.
double estimated_elements(const Flags& flags);
inline constexpr double kElementLimit = 128.0 * 1024 * 1024;

}  // namespace gatherfuzz
