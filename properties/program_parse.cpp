// Text to program. Every line is read on its own; errors are collected, each with its line.
#include <algorithm>
#include <map>
#include <utility>

#include "impl/training/flag_text.h"
#include "properties/program.h"
#include "properties/program_lines.h"
#include "properties/program_text.h"

namespace gatherfuzz {

namespace {

constexpr std::string_view kHeader = "gatherfuzz program v1";

enum class Section : uint8_t { set, delay, twin, fault, action, expect };
constexpr std::string_view kSectionNames[] = {"set", "delay", "twin", "fault", "action", "expect"};

// The section whose lines begin with this word.
std::optional<Section> section_of(std::string_view word) {
  if (find_action(word) != nullptr) return Section::action;
  if (word == "action") return std::nullopt;
  return find_by_name<Section>(kSectionNames, word);
}

class Parser {
 public:
  ParseResult run(std::string_view text) {
    if (text.size() > kMaxProgramBytes) {
      line_ = 1;
      error("expected at most " + std::to_string(kMaxProgramBytes) + " bytes, found " +
            std::to_string(text.size()));
    } else {
      read_lines(text);
    }
    if (errors_.empty()) settle();
    if (errors_.empty()) return {std::move(program_), {}};
    return {std::nullopt, std::move(errors_)};
  }

 private:
  void error(std::string message) { errors_.push_back({line_, std::move(message)}); }

  void read_lines(std::string_view text) {
    for (size_t begin = 0; begin < text.size() || line_ == 0;) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      std::string_view line = text.substr(begin, end - begin);
      begin = end + 1;
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      if (++line_ > static_cast<int>(kMaxProgramLines)) {
        return error("expected at most " + std::to_string(kMaxProgramLines) + " lines");
      }
      read_line(line);
      if ((line_ == 1 && !errors_.empty()) || stop_ || errors_.size() >= kMaxParseErrors) return;
    }
  }

  void read_line(std::string_view line) {
    const std::optional<size_t> characters = character_count(line);
    if (!characters) return error("expected UTF-8 text without control characters");
    if (*characters > kMaxLineLength) {
      return error("expected at most " + std::to_string(kMaxLineLength) + " characters in a line, found " +
                   std::to_string(*characters));
    }
    const size_t hash = std::min(line.find('#'), line.size());
    const std::string_view body = trimmed(line.substr(0, hash));
    std::string_view comment = hash < line.size() ? line.substr(hash + 1) : std::string_view();
    comment = comment.substr(0, comment.find_last_not_of(kBlank) + 1);
    if (line_ == 1) return read_header(body, comment);
    if (!body.empty()) return read_statement(body, comment);
    if (hash < line.size()) waiting_comments_.emplace_back(comment);
  }

  void read_header(std::string_view body, std::string_view comment) {
    if (words_of(body) != words_of(kHeader)) {
      return error("expected the first line to be '" + std::string(kHeader) + "', found " + in_quotes(body));
    }
    program_.header_comment = comment;
    check_length(std::string(kHeader), program_.header_comment);
  }

  void read_statement(std::string_view body, std::string_view comment) {
    const Words words = words_of(body);
    const std::optional<Section> section = section_of(words[0]);
    if (!section) {
      std::vector<std::string_view> known{"set", "delay", "fault", "expect"};
      known.insert(known.end(), action_names().begin(), action_names().end());
      known.push_back("twin");
      return error("expected set, delay, twin, fault, an action or expect, found " + in_quotes(words[0]) +
                   nearest_hint(words[0], known));
    }
    if (*section == section_ && (section_ == Section::expect || section_ == Section::twin))
      return error("expected at most one " + std::string(words[0]) + " line");
    if (*section < section_) {
      return error("expected set, delay, twin, fault, actions and expect in this order, found " +
                   in_quotes(words[0]) + " after " +
                   std::string(kSectionNames[static_cast<size_t>(section_)]) + " lines");
    }
    section_ = *section;
    comments_ = nullptr;
    if (!std::exchange(began_, true)) program_.top_comments = std::exchange(waiting_comments_, {});
    const std::span<const std::string_view> rest = std::span(words).subspan(1);
    switch (*section) {
      case Section::set:
        read_set(rest);
        break;
      case Section::delay:
        read_delay(rest);
        break;
      case Section::twin:
        read_twin(rest);
        break;
      case Section::fault:
        read_fault(rest);
        break;
      case Section::action:
        read_action(*find_action(words[0]), rest);
        break;
      case Section::expect:
        read_expect(trimmed(body.substr(words[0].size())));
        break;
    }
    if (comments_ == nullptr) return;
    comments_->before = std::exchange(waiting_comments_, {});
    comments_->behind = comment;
    check_length(statement_, comments_->behind);
  }

  void read_set(std::span<const std::string_view> words) {
    if (words.size() != 2) {
      return error("expected set FLAG VALUE, found " + std::to_string(words.size()) + " words after set");
    }
    const std::string problem = set_flag(program_.flags, words[0], words[1]);
    if (!problem.empty()) return error(problem);
    const auto [first, is_new] = set_lines_.emplace(words[0], line_);
    if (!is_new) {
      return error("expected " + std::string(words[0]) + " to be set once, found it set in line " +
                   std::to_string(first->second) + " already");
    }
    comments_ = &program_.flag_comments[std::string(words[0])];
    statement_ = "set " + std::string(words[0]) + " " + find_flag(words[0])->text(program_.flags);
  }

  void read_delay(std::span<const std::string_view> words) {
    Delay delay;
    const std::string problem = read_arguments(delay, delay_arguments(), words);
    if (!problem.empty()) return error(problem);
    statement_ = "delay" + arguments_text(delay, delay_arguments());
    comments_ = &program_.delays.emplace_back(std::move(delay)).comments;
  }

  void read_twin(std::span<const std::string_view> words) {
    TwinSpec twin;
    const std::string problem = read_arguments(twin, twin_arguments(), words);
    if (!problem.empty()) return error(problem);
    statement_ = "twin" + arguments_text(twin, twin_arguments());
    comments_ = &program_.twin.emplace(std::move(twin)).comments;
  }

  void read_fault(std::span<const std::string_view> words) {
    const std::string_view name = words.empty() ? std::string_view() : words[0];
    const FaultKindInfo* info = find_fault_kind(name);
    if (info == nullptr) {
      return error("expected the kind of fault to be " + joined_choices(fault_kind_names()) + ", found " +
                   in_quotes(name) + nearest_hint(name, fault_kind_names()));
    }
    FaultSpec fault;
    fault.kind = info->kind;
    const std::string problem = read_arguments(fault, info->arguments, words.subspan(1));
    if (!problem.empty()) return error(problem);
    statement_ = print_fault(fault);
    comments_ = &program_.faults.emplace_back(std::move(fault)).comments;
  }

  void read_action(const ActionInfo& info, std::span<const std::string_view> words) {
    if (program_.actions.size() == kMaxActions) {
      stop_ = true;
      return error("expected at most " + std::to_string(kMaxActions) + " actions");
    }
    Action action;
    action.kind = info.kind;
    const std::string problem = read_arguments(action, info.arguments, words);
    if (!problem.empty()) return error(problem);
    statement_ = print_action(action);
    comments_ = &program_.actions.emplace_back(std::move(action)).comments;
    if (training_steps(program_) > kMaxTrainingSteps) {
      stop_ = true;
      error("expected at most " + std::to_string(kMaxTrainingSteps) + " training steps, found " +
            std::to_string(training_steps(program_)));
    }
  }

  void read_expect(std::string_view text) {
    const auto expected =
        std::span(kVerdictNames).first(4);  // skipped and error are not outcomes of a program
    const size_t colon = text.find(':');
    const bool detailed = colon != std::string_view::npos;
    const std::string_view verdict = trimmed(text.substr(0, std::min(colon, text.size())));
    const std::string_view detail = detailed ? trimmed(text.substr(colon + 1)) : std::string_view();
    Expectation expectation;
    const std::optional<Verdict> found = find_by_name<Verdict>(expected, verdict);
    if (!found) {
      return error("expected the verdict to be " + joined_choices(expected) + ", found " +
                   in_quotes(verdict) + nearest_hint(verdict, expected));
    }
    expectation.verdict = *found;
    if (*found == Verdict::fail) {
      expectation.failure = find_by_name<FailureClass>(kFailureClassNames, detail);
      if (!expectation.failure) return bad_detail("fail: CLASS, a class", detail, kFailureClassNames);
    } else if (*found == Verdict::refused && detailed) {
      expectation.reason = find_by_name<RefusalReason>(kRefusalReasonNames, detail);
      if (!expectation.reason) return bad_detail("refused: REASON, a reason", detail, kRefusalReasonNames);
    } else if (detailed) {
      return error("expected nothing after " + std::string(verdict) + ", found " +
                   in_quotes(text.substr(colon)));
    }
    statement_ = print_expectation(expectation);
    comments_ = &program_.expect.emplace(std::move(expectation)).comments;
  }

  void bad_detail(std::string what, std::string_view found, std::span<const std::string_view> names) {
    error("expected " + what + " of " + joined_choices(names) + ", found " + in_quotes(found) +
          nearest_hint(found, names));
  }

  // Lines must stay within the limit when they are printed.
  void check_length(const std::string& statement, const std::string& comment) {
    const size_t length = character_count(with_comment(statement, comment)).value_or(0);
    if (length <= kMaxLineLength) return;
    error("expected at most " + std::to_string(kMaxLineLength) + " characters in the printed line, found " +
          std::to_string(length));
  }

  void settle() {
    program_.end_comments = std::move(waiting_comments_);
    program_ = with_settled_comments(std::move(program_));
    const size_t bytes = print_program(program_).size();
    if (bytes <= kMaxProgramBytes) return;
    error("expected at most " + std::to_string(kMaxProgramBytes) + " bytes in the printed program, found " +
          std::to_string(bytes));
  }

  Program program_;
  std::vector<ParseError> errors_;
  int line_ = 0;
  bool stop_ = false;   // after an error that every further line would repeat
  bool began_ = false;  // a statement was read
  Section section_ = Section::set;
  std::vector<std::string> waiting_comments_;          // whole lines, until the next statement
  std::map<std::string, int, std::less<>> set_lines_;  // where each flag was set
  Comments* comments_ = nullptr;                       // of the statement just read
  std::string statement_;                              // that statement, printed
};

}  // namespace

ParseResult parse_program(std::string_view text) {
  return Parser().run(text);
}

}  // namespace gatherfuzz
