// Parse and print are inverse, over random programs and over random edits of their text.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "properties/program.h"
#include "properties/program_lines.h"

namespace gatherfuzz {
namespace {

int below(int n) {
  return *rc::gen::resize(100, rc::gen::inRange(0, n));
}
bool one_in(int n) {
  return below(n) == 0;
}

std::string random_comment() {
  static const char* const kPieces[] = {" ", "a", "#", "set", "\xC3\xA4", "train 1", "=", ":"};
  std::string text;
  for (int i = below(5); i > 0; --i) text += kPieces[below(8)];
  return text + "z";  // blanks at the end are not kept
}

Comments random_comments() {
  Comments comments;
  if (one_in(4)) comments.before = {random_comment(), one_in(2) ? "" : random_comment()};
  if (one_in(4)) comments.behind = random_comment();
  return comments;
}

std::string random_name() {
  static const char* const kNames[] = {"quantize", "all_gather", "layers.0.qkv", "a-b", "X9"};
  return kNames[below(5)];
}

void set_random_flags(Program& program) {
  for (const FlagInfo& info : flag_table()) {
    if (!one_in(3)) continue;
    std::string value;
    if (info.kind == FlagKind::real)
      value = print_real(info.least + (info.most - info.least) * below(1000) / 1000);
    if (info.kind == FlagKind::whole) value = std::to_string(static_cast<int>(info.least) + below(2));
    if (!info.choices.empty())
      value = info.choices[static_cast<size_t>(below(static_cast<int>(info.choices.size())))];
    RC_ASSERT(set_flag(program.flags, info.name, value) == "");
    program.flag_comments[std::string(info.name)] = random_comments();
  }
}

FaultSpec random_fault() {
  FaultSpec fault;
  fault.kind = static_cast<FaultKind>(below(static_cast<int>(fault_table().size())));
  fault.op = random_name();
  if (one_in(2)) fault.rank = below(8);
  if (one_in(2)) fault.iteration = IterationRange{1 + below(1000), one_in(2)};
  if (one_in(2)) fault.bucket = below(256);
  if (one_in(2)) fault.param = random_name();
  if (fault.kind == FaultKind::insert) fault.before = random_name();
  if (fault.kind == FaultKind::coefficient) fault.by = (below(2000) - 1000) / 7.0;
  if (fault.kind == FaultKind::previous_value && one_in(2)) fault.operand = random_name();
  const bool may_have_when = fault.kind != FaultKind::coefficient && fault.kind != FaultKind::previous_value;
  if (may_have_when && one_in(2)) fault.when = FaultWhen::replay_with_hooks_off;
  for (int i = below(3); i > 0; --i)  // more would not fit into a line with all else
    fault.after.push_back(static_cast<ActionKind>(below(static_cast<int>(action_table().size()))));
  fault.comments = random_comments();
  return fault;
}

Action random_action() {
  Action action;
  action.kind = static_cast<ActionKind>(below(static_cast<int>(action_table().size())));
  switch (action.kind) {
    case ActionKind::train:
    case ActionKind::warmup:
    case ActionKind::evaluate:
    case ActionKind::set_microbatches:
      action.count = 1 + below(16);
      break;
    case ActionKind::start_loop:
      action.hooks_on = one_in(2);
      break;
    case ActionKind::end_loop:
      action.keep_graph = one_in(2);
      break;
    case ActionKind::inject_nonfinite:
      action.rank = below(8);
      action.where = static_cast<InjectionPlace>(below(2));
      break;
    case ActionKind::save_checkpoint:
    case ActionKind::load_checkpoint:
      action.name = random_name();
      break;
    default:  // no arguments
      break;
  }
  action.comments = random_comments();
  return action;
}

TwinSpec random_twin() {
  TwinSpec twin;
  twin.kind = static_cast<TwinKind>(below(static_cast<int>(twin_table().size())));
  twin.comments = random_comments();
  return twin;
}

Expectation random_expectation() {
  Expectation expectation;
  expectation.verdict = static_cast<Verdict>(below(4));
  if (expectation.verdict == Verdict::fail) expectation.failure = static_cast<FailureClass>(below(23));
  if (expectation.verdict == Verdict::refused && one_in(2)) {
    expectation.reason = static_cast<RefusalReason>(below(6));
  }
  expectation.comments = random_comments();
  return expectation;
}

Program random_program() {
  Program program;
  if (one_in(2)) program.header_comment = random_comment();
  if (one_in(2)) program.top_comments = {random_comment()};
  if (one_in(2)) program.end_comments = {random_comment()};
  set_random_flags(program);
  for (int i = below(3); i > 0; --i) {
    program.delays.push_back({static_cast<StreamName>(below(2)), 1 + below(1000),
                              one_in(2) ? "" : random_name(), random_comments()});
  }
  if (one_in(3)) program.twin = random_twin();
  for (int i = below(4); i > 0; --i) program.faults.push_back(random_fault());
  for (int i = below(20); i > 0; --i) program.actions.push_back(random_action());
  if (one_in(2)) program.expect = random_expectation();
  return program;
}

RC_GTEST_PROP(ProgramRoundTrip, ParseUndoesPrint, ()) {
  const Program program = random_program();
  const std::string text = print_program(program);
  const ParseResult result = parse_program(text);
  RC_LOG() << text << (result.ok() ? "" : result.errors[0].message);
  RC_ASSERT(result.ok());
  RC_ASSERT(*result.program == with_settled_comments(program));
  RC_ASSERT(print_program(*result.program) == text);
}

RC_GTEST_PROP(ProgramRoundTrip, HashSeesStatementsOnly, ()) {
  const Program program = random_program();
  RC_ASSERT(program_hash(program) == program_hash(without_comments(program)));
  Program other = program;
  other.actions.push_back(random_action());
  RC_ASSERT(program_hash(program) != program_hash(other));
}

// Bytes that matter to the grammar are drawn often, so that many edited texts still parse.
RC_GTEST_PROP(ProgramRoundTrip, EditedTextEitherFailsOrPrintsCanonically, ()) {
  std::string text = print_program(random_program());
  for (int i = below(4); i > 0; --i) {
    const auto at = static_cast<size_t>(below(static_cast<int>(text.size())));
    if (one_in(2))
      text.insert(at, 1, " \n#=:+09\t\r"[below(10)]);
    else if (one_in(2))
      text.erase(at, static_cast<size_t>(1 + below(3)));
    else
      text[at] = static_cast<char>(below(256));
  }
  const ParseResult first = parse_program(text);
  RC_CLASSIFY(first.ok(), "still parses");
  RC_ASSERT(first.ok() == first.errors.empty());
  if (!first.ok()) return;
  const std::string canonical = print_program(*first.program);
  const ParseResult second = parse_program(canonical);
  RC_LOG() << canonical << (second.ok() ? "" : second.errors[0].message);
  RC_ASSERT(second.ok());
  RC_ASSERT(*second.program == *first.program);
  RC_ASSERT(print_program(*second.program) == canonical);
}

}  // namespace
}  // namespace gatherfuzz
