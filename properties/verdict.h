// What a run of a program comes to: a verdict, and for a failure its class, for a refusal its reason. The
// names are those of program files, reports and JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>

namespace gatherfuzz {

enum class Verdict : uint8_t { pass, refused, fail, vacuous, skipped, error };

inline constexpr std::string_view kVerdictNames[] = {"pass",    "refused", "fail",
                                                     "vacuous", "skipped", "error"};

// Each oracle has a class. The earliest violation decides the class of a failure; among violations at one
// point the first of this order does, and the others are listed beside it.
enum class FailureClass : uint8_t {
  deadlock,
  capture_error,
  use_after_free,
  uninitialized,
  race,
  zeroed_weights,
  stale_weights,
  wrong_weights,
  polluted_grads,
  contribution,
  ownership,
  skip_differs,
  replica_differs,
  eval_disturbs,
  resume_differs,
  graph_differs,
  flag_differs,
  wrong_loss,
  nondeterministic,
  crash,
  timeout,
  runtime_differs,
  over_refused,
};

inline constexpr std::string_view kFailureClassNames[] = {
    "deadlock",       "capture-error",   "use-after-free",  "uninitialized",    "race",
    "zeroed-weights", "stale-weights",   "wrong-weights",   "polluted-grads",   "contribution",
    "ownership",      "skip-differs",    "replica-differs", "eval-disturbs",    "resume-differs",
    "graph-differs",  "flag-differs",    "wrong-loss",      "nondeterministic", "crash",
    "timeout",        "runtime-differs", "over-refused"};

// Why a program was refused; the whole list.
enum class RefusalReason : uint8_t { flags, action_order, guard, capture_rule, limit, nonfinite_grad };

inline constexpr std::string_view kRefusalReasonNames[] = {"flags",        "action-order", "guard",
                                                           "capture-rule", "limit",        "nonfinite-grad"};

static_assert(std::size(kVerdictNames) == size_t(Verdict::error) + 1);
static_assert(std::size(kFailureClassNames) == size_t(FailureClass::over_refused) + 1);
static_assert(std::size(kRefusalReasonNames) == size_t(RefusalReason::nonfinite_grad) + 1);

constexpr std::string_view name_of(Verdict verdict) {
  return kVerdictNames[static_cast<size_t>(verdict)];
}
constexpr std::string_view name_of(FailureClass c) {
  return kFailureClassNames[static_cast<size_t>(c)];
}
constexpr std::string_view name_of(RefusalReason r) {
  return kRefusalReasonNames[static_cast<size_t>(r)];
}

// The value with this name among `names` (one of the tables above), if there is one.
template <class Enum>
std::optional<Enum> find_by_name(std::span<const std::string_view> names, std::string_view name) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace gatherfuzz
