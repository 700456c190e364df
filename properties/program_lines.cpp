#include "properties/program_lines.h"

#include <algorithm>
#include <array>

namespace gatherfuzz {

namespace {

constexpr std::string_view kStreams[] = {"compute", "comm"};
constexpr std::string_view kOffOn[] = {"off", "on"};
constexpr std::string_view kFalseTrue[] = {"false", "true"};
constexpr std::string_view kPlaces[] = {"grad", "shard"};
constexpr std::string_view kWhens[] = {"always", "replay_with_hooks_off"};

constexpr Bounds kRanks{0, 7, {}};

template <auto Member>
constexpr Argument<Action> number(double least, double most) {
  return argument<Member, Action>("N", true, true, {least, most, {}});
}
template <auto Member>
constexpr Argument<Action> option(std::string_view key, std::span<const std::string_view> choices) {
  return argument<Member, Action>(key, false, false, {0, 0, choices});
}

constexpr Argument<Action> kSteps[] = {number<&Action::count>(1, kMaxTrainingSteps)};
constexpr Argument<Action> kPasses[] = {number<&Action::count>(1, 100)};
constexpr Argument<Action> kMicrobatches[] = {number<&Action::count>(1, 16)};
constexpr Argument<Action> kStartLoop[] = {option<&Action::hooks_on>("hooks", kOffOn)};
constexpr Argument<Action> kEndLoop[] = {option<&Action::keep_graph>("keep_graph", kFalseTrue)};
constexpr Argument<Action> kInject[] = {argument<&Action::rank, Action>("rank", false, true, kRanks),
                                        option<&Action::where>("where", kPlaces)};

constexpr Argument<Action> kCheckpoint[] = {argument<&Action::name, Action>("NAME", true, true, {})};

constexpr ActionInfo kActions[] = {
    {ActionKind::train, "train", kSteps,
     "N times: `zero_grad_buffer`; `copy_main_params_to_param_buffer` if and only if this iteration's work "
     "contains "
     "the gather; `forward_backward`; `finish_grad_sync`; `optimizer_step`; after a step that was not "
     "skipped, "
     "`enable_forward_pre_hook`"},
    {ActionKind::warmup, "warmup", kSteps,
     "`enable_forward_pre_hook`; N training steps; main params, moments, step, LR, RNG and data position "
     "restored; "
     "zero, stage, forced sync. The graph and the call counter stay"},
    {ActionKind::start_loop, "start_loop", kStartLoop,
     "zero, stage, forced sync if the weights are not current; hooks as named"},
    {ActionKind::end_loop, "end_loop", kEndLoop,
     "zero, stage, forced sync; `disable_forward_pre_hook`; without keep_graph the graph is dropped"},
    {ActionKind::evaluate, "evaluate", kPasses,
     "zero, stage; `disable_forward_pre_hook`; forced sync; N forward passes over evaluation batches, which "
     "have "
     "their own counter; hooks as before"},
    {ActionKind::inject_nonfinite, "inject_nonfinite", kInject,
     "the next iteration adds an infinity on this rank: where=grad through a static input of the backward "
     "pass that "
     "is normally zero, where=shard in one reduced gradient element"},
    {ActionKind::skip_iteration, "skip_iteration", {}, "the next batch is consumed, nothing else happens"},
    {ActionKind::set_microbatches, "set_microbatches", kMicrobatches,
     "the next iterations have N microbatches; a graph of another count is captured again"},
    {ActionKind::reset_graph, "reset_graph", {}, "the graphs are dropped and their counters are 0 again"},
    {ActionKind::check_weight_hashes,
     "check_weight_hashes",
     {},
     "zero, stage; `disable_forward_pre_hook`; forced sync; every rank hashes its weights, and all hashes "
     "are "
     "compared; hooks as before"},
    {ActionKind::rerun_forward_backward,
     "rerun_forward_backward",
     {},
     "`zero_grad_buffer`; `copy_main_params_to_param_buffer` if and only if this work contains the gather; "
     "`forward_backward` on the last batch again, without an injection; `finish_grad_sync`; no update"},
    {ActionKind::offload_grad_buffers,
     "offload_grad_buffers",
     {},
     "the memory of the grad buffers is given back, with the params that share it; until it is restored, no "
     "action that uses it may come"},
    {ActionKind::restore_grad_buffers,
     "restore_grad_buffers",
     {},
     "it is there again, zeroed and at another address; a graph is captured again"},
    {ActionKind::save_checkpoint, "save_checkpoint", kCheckpoint,
     "zero, stage, forced sync; main params, moments, step, LR, counters of batches and number of "
     "microbatches are kept under the name, in place of what it named before; hooks stay"},
    {ActionKind::load_checkpoint, "load_checkpoint", kCheckpoint,
     "what was kept under the name is there again, and nothing of hooks, graphs and their counters (a graph "
     "of another number of microbatches is captured again); zero, stage, forced sync"},
};

constexpr auto kOp = argument<&FaultSpec::op, FaultSpec>("op", false, true, {});
constexpr auto kRank = argument<&FaultSpec::rank, FaultSpec>("rank", false, false, kRanks);
constexpr auto kIteration =
    argument<&FaultSpec::iteration, FaultSpec>("iteration", false, false, {1, kMaxTrainingSteps, {}});
constexpr auto kWhen = argument<&FaultSpec::when, FaultSpec>("when", false, false, {0, 0, kWhens});
constexpr auto kAfter = argument<&FaultSpec::after, FaultSpec>("after", false, false, {1, 8, {}});
constexpr auto kBucket = argument<&FaultSpec::bucket, FaultSpec>("bucket", false, false, {0, 255, {}});
constexpr auto kParam = argument<&FaultSpec::param, FaultSpec>("param", false, false, {});
constexpr auto kOperand = argument<&FaultSpec::operand, FaultSpec>("operand", false, false, {});
constexpr auto kFactor = argument<&FaultSpec::by, FaultSpec>("by", false, true, {-1e6, 1e6, {}});
constexpr auto kBefore = argument<&FaultSpec::before, FaultSpec>("before", false, true, {});
// Where in the stack the fault sits. There is one place so far, so nothing is stored.
constexpr Argument<FaultSpec> kAt = {
    "at",
    false,
    false,
    {},
    [](FaultSpec&, const Bounds&, std::string_view text) { return text == "execute"; },
    [](const FaultSpec&, const Bounds&) { return std::string("execute"); },
    [](const FaultSpec&) { return true; },
    [](const Bounds&) { return std::string("execute (only execute is implemented)"); }};

constexpr Argument<FaultSpec> kPlain[] = {kOp, kRank, kIteration, kWhen, kAfter, kBucket, kParam, kAt};
constexpr Argument<FaultSpec> kInsert[] = {kOp,     kRank,  kIteration, kWhen, kAfter,
                                           kBucket, kParam, kBefore,    kAt};
constexpr Argument<FaultSpec> kPrevious[] = {kOp, kRank, kIteration, kAfter, kBucket, kParam, kOperand, kAt};
constexpr Argument<FaultSpec> kCoefficient[] = {kOp,     kRank,  kIteration, kAfter,
                                                kBucket, kParam, kFactor,    kAt};

constexpr FaultKindInfo kFaults[] = {
    {FaultKind::drop, "drop", kPlain, "the op does not run"},
    {FaultKind::duplicate, "duplicate", kPlain, "the op runs twice in a row"},
    {FaultKind::insert, "insert", kInsert, "the op runs once more, before each op named by before="},
    {FaultKind::drop_wait, "drop-wait", kPlain, "the op does not wait for the event it should wait for"},
    {FaultKind::previous_value, "previous-value", kPrevious,
     "the op runs, and then what it wrote holds again what it held before"},
    {FaultKind::coefficient, "coefficient", kCoefficient, "a factor of the op is multiplied by by="},
};

constexpr TwinInfo kTwins[] = {
    {TwinKind::none, "none", FailureClass::graph_differs, "no second run"},
    {TwinKind::eager, "eager", FailureClass::graph_differs, "nothing is captured or replayed"},
    {TwinKind::without_evaluation, "without_evaluation", FailureClass::eval_disturbs,
     "no `evaluate`, no `check_weight_hashes`, no `rerun_forward_backward`, no `save_checkpoint` that is not "
     "loaded"},
    {TwinKind::resumed, "resumed", FailureClass::resume_differs,
     "after its first `save_checkpoint` a fresh model takes over and loads it"},
    {TwinKind::again, "again", FailureClass::nondeterministic, "the same program"},
    {TwinKind::overlap_param_gather, "overlap_param_gather", FailureClass::flag_differs,
     "the param gather does not overlap"},
    {TwinKind::overlap_grad_reduce, "overlap_grad_reduce", FailureClass::flag_differs,
     "neither gather nor reduction overlaps"},
    {TwinKind::reuse_grad_buf_for_mxfp8_param_ag, "reuse_grad_buf_for_mxfp8_param_ag",
     FailureClass::flag_differs,
     "MXFP8 params are gathered in a buffer of their own, or through gradient memory"},
    {TwinKind::fp8_param_gather, "fp8_param_gather", FailureClass::flag_differs,
     "weights are stored whole and quantized on use, or kept as MXFP8; only where memory holds numbers"},
    {TwinKind::buckets, "buckets", FailureClass::flag_differs, "buckets end elsewhere"},
    {TwinKind::registration_order, "registration_order", FailureClass::flag_differs,
     "params are registered in another order"},
    {TwinKind::average_in_collective, "average_in_collective", FailureClass::flag_differs,
     "the average is taken in the collective, or before it; with FP32 gradients, or a power of two of ranks"},
    {TwinKind::loss_scale, "loss_scale", FailureClass::flag_differs,
     "the loss scale is twice as large; only where memory holds numbers"},
    {TwinKind::hooks, "hooks", FailureClass::flag_differs,
     "loops start with the forward pre-hooks the other way"},
    {TwinKind::schedule, "schedule", FailureClass::flag_differs,
     "runnable ops come in another order, and without delays"},
};
static_assert(std::size(kTwins) == size_t(TwinKind::schedule) + 1);

constexpr auto kTwinNames = [] {
  std::array<std::string_view, std::size(kTwins)> names{};
  for (size_t i = 0; i < names.size(); ++i) names[i] = kTwins[i].name;
  return names;
}();

constexpr Argument<TwinSpec> kTwin[] = {
    argument<&TwinSpec::kind, TwinSpec>("KIND", true, true, {0, 0, kTwinNames})};

constexpr Argument<Delay> kDelay[] = {
    argument<&Delay::stream, Delay>("STREAM", true, true, {0, 0, kStreams}),
    argument<&Delay::by, Delay>("by", false, true, {1, 1000, {}}),
    argument<&Delay::op, Delay>("op", false, false, {}),
};

template <class Row>
const Row* find_row(std::span<const Row> table, std::string_view name) {
  const auto row = std::find_if(table.begin(), table.end(), [&](const Row& r) { return r.name == name; });
  return row == table.end() ? nullptr : &*row;
}

template <class Row>
std::vector<std::string_view> names_of(std::span<const Row> table) {
  std::vector<std::string_view> names;
  for (const Row& row : table) names.push_back(row.name);
  return names;
}

}  // namespace

bool is_name(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !text.empty() && text.size() <= kMaxNameLength && std::all_of(text.begin(), text.end(), allowed);
}

bool read_value(int& value, const Bounds& bounds, std::string_view text) {
  const std::optional<uint64_t> number = parse_whole(text);
  if (!number || static_cast<double>(*number) < bounds.least || static_cast<double>(*number) > bounds.most) {
    return false;
  }
  value = static_cast<int>(*number);
  return true;
}
bool read_value(double& value, const Bounds& bounds, std::string_view text) {
  const std::optional<double> number = parse_real(text);
  if (!number || *number < bounds.least || *number > bounds.most) return false;
  value = *number;
  return true;
}
bool read_value(std::string& value, const Bounds&, std::string_view text) {
  if (!is_name(text)) return false;
  value = text;
  return true;
}
bool read_value(IterationRange& value, const Bounds& bounds, std::string_view text) {
  const bool onward = !text.empty() && text.back() == '+';
  if (!read_value(value.first, bounds, onward ? text.substr(0, text.size() - 1) : text)) return false;
  value.onward = onward;
  return true;
}
bool read_value(std::vector<ActionKind>& value, const Bounds& bounds, std::string_view text) {
  std::vector<ActionKind> actions;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const ActionInfo* action = find_action(text.substr(begin, end - begin));
    if (action == nullptr || static_cast<double>(actions.size()) == bounds.most) return false;
    actions.push_back(action->kind);
    begin = end + 1;
  }
  value = std::move(actions);
  return true;
}

std::string value_text(int value, const Bounds&) {
  return std::to_string(value);
}
std::string value_text(double value, const Bounds&) {
  return print_real(value);
}
std::string value_text(const std::string& value, const Bounds&) {
  return value;
}
std::string value_text(const IterationRange& value, const Bounds&) {
  return std::to_string(value.first) + (value.onward ? "+" : "");
}
std::string value_text(const std::vector<ActionKind>& value, const Bounds&) {
  std::string text;
  for (const ActionKind action : value)
    text.append(text.empty() ? "" : ",").append(action_table()[static_cast<size_t>(action)].name);
  return text;
}

std::string expected_text(const int&, const Bounds& bounds) {
  return print_real(bounds.least) + " to " + print_real(bounds.most);
}
std::string expected_text(const double&, const Bounds& bounds) {
  return print_real(bounds.least) + " to " + print_real(bounds.most);
}
std::string expected_text(const std::string&, const Bounds&) {
  return "a name";
}
std::string expected_text(const IterationRange&, const Bounds& bounds) {
  return expected_text(int{}, bounds) + ", or with + from there on";
}
std::string expected_text(const std::vector<ActionKind>&, const Bounds& bounds) {
  return expected_text(int{}, bounds) + " names of actions with commas between them";
}

std::span<const ActionInfo> action_table() {
  return kActions;
}
std::span<const FaultKindInfo> fault_table() {
  return kFaults;
}
std::span<const Argument<Delay>> delay_arguments() {
  return kDelay;
}
std::span<const TwinInfo> twin_table() {
  return kTwins;
}
std::span<const Argument<TwinSpec>> twin_arguments() {
  return kTwin;
}
const ActionInfo* find_action(std::string_view name) {
  return find_row(action_table(), name);
}
const FaultKindInfo* find_fault_kind(std::string_view name) {
  return find_row(fault_table(), name);
}

std::span<const std::string_view> action_names() {
  static const std::vector<std::string_view> names = names_of(action_table());
  return names;
}
std::span<const std::string_view> fault_kind_names() {
  static const std::vector<std::string_view> names = names_of(fault_table());
  return names;
}

}  // namespace gatherfuzz
