// The lines of a program as tables: one row for each action and each kind of fault. A new action or fault is
// a row here, a member of its struct if it has a new argument, and a line in PROGRAM.md, which a test
// compares.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "properties/line_arguments.h"
#include "properties/program.h"

namespace gatherfuzz {

struct ActionInfo {
  ActionKind kind;
  std::string_view name;
  std::span<const Argument<Action>> arguments;
  std::string_view meaning;  // in raw actions
};

struct FaultKindInfo {
  FaultKind kind;
  std::string_view name;
  std::span<const Argument<FaultSpec>> arguments;
  std::string_view meaning;
};

// In the order of the enums.
std::span<const ActionInfo> action_table();
std::span<const FaultKindInfo> fault_table();
const ActionInfo* find_action(std::string_view name);
const FaultKindInfo* find_fault_kind(std::string_view name);
std::span<const std::string_view> action_names();
std::span<const std::string_view> fault_kind_names();

std::span<const Argument<Delay>> delay_arguments();

struct TwinInfo {
  TwinKind kind;
  std::string_view name;
  FailureClass failure;      // if the two differ; of `none` without meaning
  std::string_view meaning;  // what the twin is
};
// In the order of the enum.
std::span<const TwinInfo> twin_table();
std::span<const Argument<TwinSpec>> twin_arguments();

// "train N", "inject_nonfinite rank= [where=]": a line as documentation writes it.
template <class Line>
std::string usage(std::string_view word, std::span<const Argument<Line>> table) {
  std::string result(word);
  for (const Argument<Line>& row : table) {
    const std::string text = std::string(row.name) + (row.positional ? "" : "=");
    result += row.required ? " " + text : " [" + text + "]";
  }
  return result;
}

// "rank 0 to 7; where grad or shard, default grad": what the arguments of a line may be.
template <class Line>
std::string usage_values(std::span<const Argument<Line>> table) {
  std::string result;
  for (const Argument<Line>& row : table) {
    result += (result.empty() ? "" : "; ") + std::string(row.name) + " " + row.expected(row.bounds);
    const std::string initial = row.text(Line{}, row.bounds);
    if (!row.required && !initial.empty()) result += ", default " + initial;
  }
  return result;
}

}  // namespace gatherfuzz
