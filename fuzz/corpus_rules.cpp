#include "fuzz/corpus_rules.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace gatherfuzz {

namespace {

constexpr std::string_view kEnding = ".program";
constexpr std::string_view kFaultEnding = ".fault.program";

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

}  // namespace

FolderRules folder_rules(std::string_view folder_name) {
  if (folder_name == "regressions") return {true, true};
  return {folder_name == "seeds" || folder_name == "recipes", false};
}

std::string name_problem(std::string_view name) {
  bool right = !name.empty() && name.front() != '-' && name.back() != '-';
  right = right && name.find("--") == std::string_view::npos;
  right =
      right && std::all_of(name.begin(), name.end(), [](char c) { return c == '-' || is_word_character(c); });
  if (right) return "";
  return "expected a name of lower-case letters and digits in words joined by '-', found '" +
         std::string(name) + "'";
}

std::string program_file_name(const std::string& name, const Program& program) {
  return name + std::string(program.faults.empty() ? kEnding : kFaultEnding);
}

std::string name_of_file(const std::string& path) {
  const std::string file = std::filesystem::path(path).filename().string();
  const std::string_view ending = file.ends_with(kFaultEnding) ? kFaultEnding : kEnding;
  return file.substr(0, file.size() - ending.size());
}

std::string hash_text(const Program& program) {
  char text[32];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(program_hash(program)));
  return text;
}

uint64_t behaviour_hash(Program program) {
  program.expect.reset();
  return program_hash(program);
}

Program healthy_half(Program program) {
  program.faults.clear();
  program.expect.reset();
  return program;
}

}  // namespace gatherfuzz
