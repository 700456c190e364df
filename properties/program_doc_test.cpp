// PROGRAM.md and the code say the same: the rows of its tables are those of the tables in the code, in both
// directions.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "properties/program.h"
#include "properties/program_lines.h"

namespace gatherfuzz {
namespace {

std::string document() {
  std::ifstream file(GATHERFUZZ_SOURCE_DIR "/properties/PROGRAM.md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The table rows below a heading, without the two lines of its head.
std::vector<std::string> rows_below(const std::string& heading) {
  std::istringstream text(document());
  std::vector<std::string> rows;
  bool inside = false;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("#")) inside = line == heading;
    if (inside && line.starts_with("|")) rows.push_back(line);
  }
  EXPECT_GT(rows.size(), 2u) << heading;
  if (rows.size() >= 2) rows.erase(rows.begin(), rows.begin() + 2);
  return rows;
}

std::string row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + cell + " |";
  return line;
}
std::string code(std::string_view text) {
  return "`" + std::string(text) + "`";
}

// The first cells of the rows, without their backquotes.
std::vector<std::string> first_cells(const std::vector<std::string>& rows) {
  std::vector<std::string> cells;
  for (const std::string& line : rows) {
    const size_t begin = line.find('`') + 1;
    cells.push_back(line.substr(begin, line.find('`', begin) - begin));
  }
  return cells;
}

TEST(ProgramDocument, Flags) {
  std::vector<std::string> rows;
  for (const FlagInfo& info : flag_table()) {
    rows.push_back(row({code(info.name), info.expected(), code(info.default_text()), std::string(info.doc)}));
  }
  EXPECT_EQ(rows_below("## Flags"), rows);
}

TEST(ProgramDocument, FlagRules) {
  std::vector<std::string> rows;
  for (const FlagRule& rule : flag_rules()) {
    std::string names;
    for (std::string_view name : rule.conflict.names) names += (names.empty() ? "" : ", ") + code(name);
    rows.push_back(row({names, std::string(rule.conflict.reason)}));
  }
  EXPECT_EQ(rows_below("## Rules"), rows);
}

TEST(ProgramDocument, Actions) {
  std::vector<std::string> rows;
  for (const ActionInfo& info : action_table()) {
    EXPECT_EQ(&action_table()[static_cast<size_t>(info.kind)], &info) << "rows are in the order of the enum";
    rows.push_back(row(
        {code(usage(info.name, info.arguments)), usage_values(info.arguments), std::string(info.meaning)}));
  }
  EXPECT_EQ(rows_below("## Actions"), rows);
}

TEST(ProgramDocument, Twins) {
  std::vector<std::string> rows;
  for (const TwinInfo& info : twin_table()) {
    EXPECT_EQ(&twin_table()[static_cast<size_t>(info.kind)], &info) << "rows are in the order of the enum";
    const bool judged = info.kind != TwinKind::none;
    rows.push_back(
        row({code(info.name), judged ? code(name_of(info.failure)) : "", std::string(info.meaning)}));
  }
  EXPECT_EQ(rows_below("## Twins"), rows);
}

TEST(ProgramDocument, Faults) {
  std::vector<std::string> rows;
  for (const FaultKindInfo& info : fault_table()) {
    EXPECT_EQ(&fault_table()[static_cast<size_t>(info.kind)], &info) << "rows are in the order of the enum";
    rows.push_back(row({code(usage(info.name, info.arguments)), std::string(info.meaning)}));
  }
  EXPECT_EQ(rows_below("## Faults"), rows);
}

TEST(ProgramDocument, ReasonsAndClasses) {
  const std::vector<std::string> reasons(std::begin(kRefusalReasonNames), std::end(kRefusalReasonNames));
  EXPECT_EQ(first_cells(rows_below("### Reasons of a refusal")), reasons);
  const std::vector<std::string> classes(std::begin(kFailureClassNames), std::end(kFailureClassNames));
  EXPECT_EQ(first_cells(rows_below("### Classes of failures")), classes);
}

TEST(ProgramDocument, LimitsAndUsage) {
  const std::string text = document();
  const std::string limits[] = {std::to_string(kMaxProgramBytes / 1024) + " KiB",
                                std::to_string(kMaxProgramLines) + " lines",
                                std::to_string(kMaxLineLength) + " characters a line",
                                std::to_string(kMaxActions) + " actions",
                                std::to_string(kMaxTrainingSteps) + " training steps",
                                std::to_string(kMaxNameLength) + " characters a name",
                                code(usage("delay", delay_arguments())),
                                usage_values(delay_arguments())};
  for (const std::string& limit : limits) EXPECT_NE(text.find(limit), std::string::npos) << limit;
}

TEST(ProgramDocument, FaultArguments) {
  std::vector<std::string> rows;
  for (const FaultKindInfo& info : fault_table()) {
    for (const Argument<FaultSpec>& argument : info.arguments) {
      const std::string line = row({code(argument.name), argument.expected(argument.bounds)});
      if (std::find(rows.begin(), rows.end(), line) == rows.end()) rows.push_back(line);
    }
  }
  std::vector<std::string> found = rows_below("### Arguments of a fault");
  for (std::string& line : found) line = line.substr(0, line.rfind('|', line.size() - 2) + 1);  // the meaning
  EXPECT_EQ(found, rows);
}

TEST(ProgramDocument, ItsExampleIsCanonical) {
  const std::string text = document();
  const size_t begin = text.find("```\ngatherfuzz program v1") + 4;
  const std::string example = text.substr(begin, text.find("```", begin) - begin);
  const ParseResult result = parse_program(example);
  ASSERT_TRUE(result.ok()) << result.errors[0].message;
  EXPECT_EQ(print_program(*result.program), example);
  EXPECT_EQ(refusal_before_run(*result.program), std::nullopt);
}

}  // namespace
}  // namespace gatherfuzz
