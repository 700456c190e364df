// Programs: a flag set and a short list of actions, as people, generators and fuzzers write them. The text
// format is documented in PROGRAM.md; this is its parsed form.
//
// parse_program and print_program are inverse: print is canonical, and parse(print(p)) == p for every parsed
// program.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "impl/training/flags.h"
#include "properties/verdict.h"

namespace gatherfuzz {

// Limits of a program file; beyond them a file is an error.
inline constexpr size_t kMaxProgramBytes = 64 * 1024;
inline constexpr size_t kMaxProgramLines = 4096;
inline constexpr size_t kMaxLineLength = 200;
inline constexpr size_t kMaxActions = 256;
inline constexpr int kMaxTrainingSteps = 1000;
// Of checkpoints that a program keeps; one more is refused.
inline constexpr size_t kMaxCheckpoints = 4;

// Comments that belong to a line: whole lines before it, and one behind it. Without the '#', otherwise as
// written.
struct Comments {
  std::vector<std::string> before;
  std::string behind;

  bool operator==(const Comments&) const = default;
};

// The streams of a rank whose ops `delay` can hold back.
enum class StreamName : uint8_t { compute, comm };

// Ops of a stream (all, or those with one name) become runnable `by` scheduler turns late.
struct Delay {
  StreamName stream = StreamName::compute;
  int by = 0;
  std::string op;
  Comments comments;

  bool operator==(const Delay&) const = default;
};

// A second run, derived from the program, that must take the same steps: by a change that must not matter.
// Without a `twin` line the program's hash chooses among those that apply.
enum class TwinKind : uint8_t {
  none,
  eager,
  without_evaluation,
  resumed,
  again,
  overlap_param_gather,
  overlap_grad_reduce,
  reuse_grad_buf_for_mxfp8_param_ag,
  fp8_param_gather,
  buckets,
  registration_order,
  average_in_collective,
  loss_scale,
  hooks,
  schedule,
};

struct TwinSpec {
  TwinKind kind = TwinKind::none;
  Comments comments;

  bool operator==(const TwinSpec&) const = default;
};

enum class ActionKind : uint8_t {
  train,
  warmup,
  start_loop,
  end_loop,
  evaluate,
  inject_nonfinite,
  skip_iteration,
  set_microbatches,
  reset_graph,
  check_weight_hashes,
  rerun_forward_backward,
  offload_grad_buffers,
  restore_grad_buffers,
  save_checkpoint,
  load_checkpoint,
};

enum class FaultKind : uint8_t { drop, duplicate, insert, drop_wait, previous_value, coefficient };

// Iterations of the program a fault is active in, counted from 1: one, or this one and all later ones.
struct IterationRange {
  int first = 1;
  bool onward = false;

  bool contains(int iteration) const { return onward ? iteration >= first : iteration == first; }
  bool operator==(const IterationRange&) const = default;
};

// The iterations in which host state and graph disagree in a way that matters: a captured graph replays while
// the forward pre-hooks are off.
enum class FaultWhen : uint8_t { always, replay_with_hooks_off };

// A fault planted in the stream of ops. What is not set matches everything.
struct FaultSpec {
  FaultKind kind = FaultKind::drop;
  std::string op;  // the op dropped, inserted, changed, or whose wait is dropped
  std::optional<int> rank;
  std::optional<IterationRange> iteration;
  FaultWhen when = FaultWhen::always;
  std::vector<ActionKind> after;  // only once these have come, in this order, with any others between them
  std::optional<int> bucket;
  std::string param;
  std::string operand;       // previous-value: the plane of a weight
  std::optional<double> by;  // coefficient: the factor
  std::string before;        // insert: `op` is inserted before this one
  Comments comments;

  bool operator==(const FaultSpec&) const = default;
};

// Where an injected infinity enters: a static input of the backward pass, or one reduced gradient element.
enum class InjectionPlace : uint8_t { grad, shard };

// One action. Members that its kind does not use keep their initial values.
struct Action {
  ActionKind kind = ActionKind::train;
  int count = 0;           // train, warmup: steps; evaluate: passes; set_microbatches: microbatches
  bool hooks_on = false;   // start_loop
  bool keep_graph = true;  // end_loop
  int rank = 0;            // inject_nonfinite
  InjectionPlace where = InjectionPlace::grad;  // inject_nonfinite
  std::string name;                             // save_checkpoint, load_checkpoint
  Comments comments;

  bool operator==(const Action&) const = default;
};

// What a file says its outcome is: a verdict (pass, refused, fail, vacuous), the reason of a refusal if it is
// named, the class of a failure always.
struct Expectation {
  Verdict verdict = Verdict::pass;
  std::optional<RefusalReason> reason;
  std::optional<FailureClass> failure;
  Comments comments;

  bool operator==(const Expectation&) const = default;
};

struct Program {
  Flags flags;
  std::vector<Delay> delays;
  std::optional<TwinSpec> twin;
  std::vector<FaultSpec> faults;
  std::vector<Action> actions;
  std::optional<Expectation> expect;

  std::string header_comment;                                  // behind the first line
  std::vector<std::string> top_comments;                       // after the first line
  std::map<std::string, Comments, std::less<>> flag_comments;  // by the name of the flag that is set
  std::vector<std::string> end_comments;                       // after the last line

  bool operator==(const Program&) const = default;
};

struct ParseError {
  int line = 0;  // from 1
  std::string message;

  bool operator==(const ParseError&) const = default;
};

struct ParseResult {
  std::optional<Program> program;  // set if there are no errors
  std::vector<ParseError> errors;  // in the order of lines, at most kMaxParseErrors

  bool ok() const { return program.has_value(); }
};
inline constexpr size_t kMaxParseErrors = 20;

// Any bytes are a valid argument; the time is linear and bounded by the limits above.
ParseResult parse_program(std::string_view text);

// The canonical text: flags in the order of their table and only those that differ from the defaults;
// comments kept.
std::string print_program(const Program& program);
std::string print_action(const Action& action);
std::string print_fault(const FaultSpec& fault);
std::string print_expectation(const Expectation& expectation);
// A line with its comment behind it.
std::string with_comment(std::string statement, std::string_view comment);

// A hash of the canonical text without comments; the same on every machine.
uint64_t program_hash(const Program& program);

// The program with its comments where print and parse leave them: those of flags that are not
// printed, and those before the first statement, go to the top.
Program with_settled_comments(Program program);
// The program without comments.
Program without_comments(Program program);

// Whether an action can do without the grad buffers, and may come while they are offloaded.
bool spares_grad_buffers(ActionKind kind);

// Training steps that the actions ask for (train and warmup).
int training_steps(const Program& program);

struct Refusal {
  RefusalReason reason = RefusalReason::flags;
  std::string text;  // names the flags or the action

  bool operator==(const Refusal&) const = default;
};

// What can be said without running: flags that exclude each other, actions that are ill-paired or need other
// flags, too many steps. The first of these, if any.
std::optional<Refusal> refusal_before_run(const Program& program);

}  // namespace gatherfuzz
