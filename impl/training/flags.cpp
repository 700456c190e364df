#include "impl/training/flags.h"

#include <type_traits>

#include "impl/training/flag_text.h"

namespace gatherfuzz {

namespace {

constexpr std::string_view kToggles[] = {"false", "true"};
constexpr std::string_view kRecipes[] = {"fp32", "bf16", "mxfp8"};
constexpr std::string_view kGraphImpls[] = {"none", "local", "full_iteration"};
constexpr std::string_view kGraphScopes[] = {"empty", "full_iteration"};
constexpr std::string_view kRoundings[] = {"up", "floor"};
constexpr std::string_view kOrders[] = {"execution", "shuffled"};
constexpr std::string_view kDecayStyles[] = {"constant", "linear", "cosine"};
constexpr std::string_view kSchedules[] = {"fifo", "reverse", "random", "pct"};
constexpr std::string_view kUnset = "unset";
constexpr double kMostSeed = 18446744073709551616.0;

template <class T>
struct Held {
  using type = T;
  static constexpr bool kOptional = false;
};
template <class T>
struct Held<std::optional<T>> {
  using type = T;
  static constexpr bool kOptional = true;
};
template <auto Member>
using HeldBy = Held<std::remove_cvref_t<decltype(Flags{}.*Member)>>;

template <auto Member>
FlagValue get_member(const Flags& flags) {
  using H = HeldBy<Member>;
  using Wide = std::conditional_t<std::is_same_v<typename H::type, double>, double, uint64_t>;
  if constexpr (H::kOptional) {
    if (!(flags.*Member)) return std::monostate{};
    return static_cast<Wide>(*(flags.*Member));
  } else {
    return static_cast<Wide>(flags.*Member);
  }
}

template <auto Member>
void set_member(Flags& flags, const FlagValue& value) {
  using T = typename HeldBy<Member>::type;
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, uint64_t>;
  if constexpr (HeldBy<Member>::kOptional) {
    if (std::holds_alternative<std::monostate>(value)) {
      flags.*Member = std::nullopt;
      return;
    }
  }
  flags.*Member = static_cast<T>(std::get<Wide>(value));
}

template <auto Member>
constexpr FlagInfo row(std::string_view name, FlagKind kind, double least, double most,
                       std::span<const std::string_view> choices, std::string_view doc) {
  return {name,
          kind,
          HeldBy<Member>::kOptional,
          least,
          most,
          choices,
          doc,
          get_member<Member>,
          set_member<Member>};
}
template <auto Member>
constexpr FlagInfo toggle(std::string_view name, std::string_view doc) {
  return row<Member>(name, FlagKind::toggle, 0, 1, kToggles, doc);
}
template <auto Member>
constexpr FlagInfo choice(std::string_view name, std::span<const std::string_view> choices,
                          std::string_view doc) {
  return row<Member>(name, FlagKind::choice, 0, static_cast<double>(choices.size() - 1), choices, doc);
}
template <auto Member>
constexpr FlagInfo whole(std::string_view name, double least, double most, std::string_view doc) {
  return row<Member>(name, FlagKind::whole, least, most, {}, doc);
}
template <auto Member>
constexpr FlagInfo real(std::string_view name, double least, double most, std::string_view doc) {
  return row<Member>(name, FlagKind::real, least, most, {}, doc);
}

using F = Flags;
constexpr FlagInfo kTable[] = {
    choice<&F::fp8_recipe>("fp8_recipe", kRecipes, "number format of the weights of the layers"),
    toggle<&F::fp8_param_gather>("fp8_param_gather", "keep the weights of the layers as MXFP8 between steps"),
    toggle<&F::reuse_grad_buf_for_mxfp8_param_ag>("reuse_grad_buf_for_mxfp8_param_ag",
                                                  "gather MXFP8 params through the gradient memory"),
    toggle<&F::overlap_param_gather>("overlap_param_gather", "gather params during forward, by pre-hooks"),
    toggle<&F::overlap_grad_reduce>("overlap_grad_reduce", "reduce gradients during backward"),
    toggle<&F::grad_reduce_in_fp32>("grad_reduce_in_fp32",
                                    "accumulate and reduce gradients in FP32; recipe fp32 always does"),
    toggle<&F::average_in_collective>("average_in_collective", "average inside the reduce-scatter"),
    toggle<&F::calculate_per_token_loss>(
        "calculate_per_token_loss",
        "add losses and gradients of tokens, then divide by the number of tokens of all ranks"),
    whole<&F::bucket_size>("bucket_size", 1, 268435456, "elements after which a bucket is closed"),
    whole<&F::num_buckets>("num_buckets", 1, 64, "buckets of about equal size instead"),
    choice<&F::cuda_graph_impl>(
        "cuda_graph_impl", kGraphImpls,
        "who captures; full_iteration is the newer spelling of local with that scope"),
    choice<&F::cuda_graph_scope>("cuda_graph_scope", kGraphScopes,
                                 "what local captures; no effect with none"),
    whole<&F::cuda_graph_warmup_steps>("cuda_graph_warmup_steps", 0, 100, "eager calls before the capture"),
    whole<&F::num_microbatches>("num_microbatches", 1, 16, "microbatches of an iteration"),
    whole<&F::data_parallel_size>("data_parallel_size", 1, 8, "ranks"),
    real<&F::clip_grad>("clip_grad", 0, 10000, "largest gradient norm; 0: no clipping"),
    real<&F::loss_scale>("loss_scale", 0.0009765625, 4294967296,
                         "constant loss scale; unset: no scaling and no check for infinities"),
    toggle<&F::check_for_nan_in_grad>("check_for_nan_in_grad",
                                      "refuse an iteration with non-finite gradients"),
    toggle<&F::use_distributed_optimizer>("use_distributed_optimizer",
                                          "each rank owns a shard of each bucket"),
    toggle<&F::untie_embeddings_and_output_weights>("untie_embeddings_and_output_weights",
                                                    "embedding and output layer are two parameters"),
    choice<&F::mx_scale_rounding>("mx_scale_rounding", kRoundings, "how MXFP8 block scales are rounded"),
    toggle<&F::first_last_layers_bf16>("first_last_layers_bf16",
                                       "keep the weights of the first and the last layer in bf16"),
    whole<&F::num_layers>("num_layers", 1, 16, "decoder layers"),
    whole<&F::hidden_size>("hidden_size", 16, 1024, "width of the residual stream"),
    whole<&F::ffn_hidden_size>("ffn_hidden_size", 16, 4096, "width inside the feed-forward block"),
    whole<&F::num_attention_heads>("num_attention_heads", 1, 64, "attention heads"),
    whole<&F::seq_length>("seq_length", 1, 512, "tokens of a sequence"),
    whole<&F::vocab_size>("vocab_size", 2, 4096, "tokens that exist; byte text needs 256"),
    whole<&F::micro_batch_size>("micro_batch_size", 1, 64, "sequences of a microbatch on each rank"),
    choice<&F::registration_order>("registration_order", kOrders,
                                   "params registered in the order of use, or shuffled"),
    whole<&F::seed>("seed", 0, kMostSeed, "seed of initial params and batches"),
    real<&F::lr>("lr", 0, 10, "learning rate"),
    real<&F::adam_beta1>("adam_beta1", 0, 0.9999, "decay of Adam's first moment"),
    real<&F::adam_beta2>("adam_beta2", 0, 0.9999, "decay of Adam's second moment"),
    real<&F::adam_eps>("adam_eps", 1e-15, 1, "added to Adam's denominator"),
    real<&F::weight_decay>("weight_decay", 0, 1, "decoupled weight decay (AdamW), on matrices only"),
    whole<&F::lr_warmup_steps>("lr_warmup_steps", 0, 1000000, "taken steps in which lr is reached, from 0"),
    choice<&F::lr_decay_style>("lr_decay_style", kDecayStyles,
                               "how the learning rate falls after its warmup"),
    whole<&F::lr_decay_steps>("lr_decay_steps", 1, 1000000,
                              "taken steps after which min_lr is reached, warmup included"),
    real<&F::min_lr>("min_lr", 0, 10, "where the learning rate stops falling"),
    real<&F::grad_norm_skip_threshold>("grad_norm_skip_threshold", 1e6, 1e30,
                                       "skip steps with a larger gradient norm, or one that is not finite"),
    toggle<&F::optimizer_cuda_graph>("optimizer_cuda_graph", "capture the optimizer step as a graph too"),
    choice<&F::schedule>("schedule", kSchedules, "order in which runnable ops run"),
    whole<&F::schedule_seed>("schedule_seed", 0, kMostSeed, "seed of schedules random and pct"),
};

bool in_range(const FlagInfo& info, double value) {
  return value >= info.least && value <= info.most;
}

std::optional<FlagValue> parse_value(const FlagInfo& info, std::string_view text) {
  if (info.may_be_unset && text == kUnset) return FlagValue{};
  if (info.kind == FlagKind::real) {
    const std::optional<double> value = parse_real(text);
    if (value && in_range(info, *value)) return FlagValue{*value};
  } else if (info.kind == FlagKind::whole) {
    const std::optional<uint64_t> value = parse_whole(text);
    if (value && in_range(info, static_cast<double>(*value))) return FlagValue{*value};
  } else {
    for (size_t i = 0; i < info.choices.size(); ++i) {
      if (info.choices[i] == text) return FlagValue{uint64_t{i}};
    }
  }
  return std::nullopt;
}

std::string bound_text(const FlagInfo& info, double bound) {
  if (info.kind == FlagKind::whole && bound == kMostSeed) return "2^64-1";
  return info.kind == FlagKind::whole ? std::to_string(static_cast<uint64_t>(bound)) : print_real(bound);
}

}  // namespace

std::string FlagInfo::text(const Flags& flags) const {
  const FlagValue value = get(flags);
  if (std::holds_alternative<std::monostate>(value)) return std::string(kUnset);
  if (kind == FlagKind::real) return print_real(std::get<double>(value));
  const uint64_t number = std::get<uint64_t>(value);
  return kind == FlagKind::whole ? std::to_string(number) : std::string(choices[number]);
}

std::string FlagInfo::expected() const {
  const bool number = kind == FlagKind::whole || kind == FlagKind::real;
  const std::string values =
      number ? bound_text(*this, least) + " to " + bound_text(*this, most) : joined_choices(choices);
  return may_be_unset ? "unset, or " + values : values;
}

std::span<const FlagInfo> flag_table() {
  return kTable;
}

const FlagInfo* find_flag(std::string_view name) {
  for (const FlagInfo& info : kTable) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

std::span<const std::string_view> flag_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const FlagInfo& info : kTable) all.push_back(info.name);
    return all;
  }();
  return names;
}

std::string set_flag(Flags& flags, std::string_view name, std::string_view value) {
  const FlagInfo* info = find_flag(name);
  if (info == nullptr) {
    return "expected the name of a flag, found " + in_quotes(name) + nearest_hint(name, flag_names());
  }
  const std::optional<FlagValue> parsed = parse_value(*info, value);
  if (!parsed) {
    const std::string kind = info->kind == FlagKind::whole ? " (a whole number)" : "";
    return "expected " + std::string(name) + " to be " + info->expected() + kind + ", found " +
           in_quotes(value) + nearest_hint(value, info->choices);
  }
  info->set(flags, *parsed);
  return {};
}

}  // namespace gatherfuzz
