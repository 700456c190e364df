// Program to canonical text, and what follows from it: the place of comments and the hash.
#include <utility>

#include "properties/program.h"
#include "properties/program_lines.h"

namespace gatherfuzz {

namespace {

bool is_printed(const FlagInfo& info, const Flags& flags) {
  return info.get(flags) != info.get(Flags{});
}

// Calls each(statement text, comments) for every printed line after the first, in order. A program with
// comments of flags that are not set passes null for lines without comments.
template <class SomeProgram, class Each>
void for_each_statement(SomeProgram& program, Each each) {
  for (const FlagInfo& info : flag_table()) {
    if (!is_printed(info, program.flags)) continue;
    const auto comments = program.flag_comments.find(info.name);
    each("set " + std::string(info.name) + " " + info.text(program.flags),
         comments == program.flag_comments.end() ? nullptr : &comments->second);
  }
  for (auto& delay : program.delays)
    each("delay" + arguments_text(delay, delay_arguments()), &delay.comments);
  if (program.twin) each("twin" + arguments_text(*program.twin, twin_arguments()), &program.twin->comments);
  for (auto& fault : program.faults) each(print_fault(fault), &fault.comments);
  for (auto& action : program.actions) each(print_action(action), &action.comments);
  if (program.expect) each(print_expectation(*program.expect), &program.expect->comments);
}

void append(std::vector<std::string>& to, std::vector<std::string> lines) {
  to.insert(to.end(), std::make_move_iterator(lines.begin()), std::make_move_iterator(lines.end()));
}

// The comments of flags that are not printed move to `lines`, in the order of the table.
std::vector<std::string> take_comments_of_unset_flags(Program& program) {
  std::vector<std::string> lines;
  for (const FlagInfo& info : flag_table()) {
    const auto found = program.flag_comments.find(info.name);
    if (found == program.flag_comments.end() || is_printed(info, program.flags)) continue;
    append(lines, std::move(found->second.before));
    if (!found->second.behind.empty()) lines.push_back(std::move(found->second.behind));
    program.flag_comments.erase(found);
  }
  return lines;
}

}  // namespace

Program with_settled_comments(Program program) {
  append(program.top_comments, take_comments_of_unset_flags(program));
  std::erase_if(program.flag_comments, [](const auto& entry) { return entry.second == Comments{}; });
  bool first = true;
  for_each_statement(program, [&](const std::string&, Comments* comments) {
    if (first && comments != nullptr) append(program.top_comments, std::exchange(comments->before, {}));
    first = false;
  });
  if (first) append(program.top_comments, std::exchange(program.end_comments, {}));
  std::erase_if(program.flag_comments, [](const auto& entry) { return entry.second == Comments{}; });
  return program;
}

Program without_comments(Program program) {
  program.header_comment.clear();
  program.top_comments.clear();
  program.flag_comments.clear();
  program.end_comments.clear();
  for_each_statement(program, [](const std::string&, Comments* comments) {
    if (comments != nullptr) *comments = {};
  });
  return program;
}

std::string with_comment(std::string statement, std::string_view comment) {
  return comment.empty() ? statement : std::move(statement) + "  #" + std::string(comment);
}

std::string print_action(const Action& action) {
  const ActionInfo& info = action_table()[static_cast<size_t>(action.kind)];
  return std::string(info.name) + arguments_text(action, info.arguments);
}

std::string print_fault(const FaultSpec& fault) {
  const FaultKindInfo& info = fault_table()[static_cast<size_t>(fault.kind)];
  return "fault " + std::string(info.name) + arguments_text(fault, info.arguments);
}

std::string print_expectation(const Expectation& expectation) {
  std::string text = "expect " + std::string(name_of(expectation.verdict));
  if (expectation.reason) text += ": " + std::string(name_of(*expectation.reason));
  if (expectation.failure) text += ": " + std::string(name_of(*expectation.failure));
  return text;
}

std::string print_program(const Program& unsettled) {
  const Program program = with_settled_comments(unsettled);
  std::string text = with_comment("gatherfuzz program v1", program.header_comment) + "\n";
  const auto print_lines = [&text](const std::vector<std::string>& comments) {
    for (const std::string& comment : comments) text += "#" + comment + "\n";
  };
  print_lines(program.top_comments);
  for_each_statement(program, [&](std::string statement, const Comments* comments) {
    if (comments != nullptr) print_lines(comments->before);
    text += with_comment(std::move(statement), comments == nullptr ? "" : comments->behind) + "\n";
  });
  print_lines(program.end_comments);
  return text;
}

uint64_t program_hash(const Program& program) {
  uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a, then a finalizer so that all bits depend on all bytes
  for (char c : print_program(without_comments(program))) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  }
  hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9u;
  hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EBu;
  return hash ^ (hash >> 31);
}

}  // namespace gatherfuzz
