// The arguments of a program line, as rows of a table: how each is read into a member of the parsed line,
// printed from it, and described. A line is `word {argument} {key=value}`; positional arguments come first,
// in the table's order.
#pragma once

#include <cmath>
#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "impl/training/flag_text.h"
#include "properties/program.h"

namespace gatherfuzz {

inline constexpr size_t kMaxNameLength = 64;

// What an argument may be: a number from least to most, or one of the choices. Names use neither.
struct Bounds {
  double least = 0;
  double most = 0;
  std::span<const std::string_view> choices;
};

// A row: one argument of lines that are parsed into a `Line`.
template <class Line>
struct Argument {
  std::string_view name;  // of a positional argument as documentation writes it, otherwise the key
  bool positional;
  bool required;
  Bounds bounds;
  bool (*read)(Line&, const Bounds&,
               std::string_view);  // false, and nothing changed, if the text is not understood
  std::string (*text)(const Line&, const Bounds&);
  bool (*initial)(const Line&);  // not printed unless required
  std::string (*expected)(const Bounds&);
};

// Letters, digits, '_', '-' and '.': names of ops, params and operands.
bool is_name(std::string_view text);

// One overload a type of member.
bool read_value(int& value, const Bounds& bounds, std::string_view text);
bool read_value(double& value, const Bounds& bounds, std::string_view text);
bool read_value(std::string& value, const Bounds& bounds, std::string_view text);
bool read_value(IterationRange& value, const Bounds& bounds, std::string_view text);
bool read_value(std::vector<ActionKind>& value, const Bounds& bounds, std::string_view text);
std::string value_text(int value, const Bounds& bounds);
std::string value_text(double value, const Bounds& bounds);
std::string value_text(const std::string& value, const Bounds& bounds);
std::string value_text(const IterationRange& value, const Bounds& bounds);
std::string value_text(const std::vector<ActionKind>& value, const Bounds& bounds);
std::string expected_text(const int&, const Bounds& bounds);
std::string expected_text(const double&, const Bounds& bounds);
std::string expected_text(const std::string&, const Bounds& bounds);
std::string expected_text(const IterationRange&, const Bounds& bounds);
std::string expected_text(const std::vector<ActionKind>&, const Bounds& bounds);

template <class T>
concept Choice = std::is_enum_v<T> || std::same_as<T, bool>;

template <Choice T>
bool read_value(T& value, const Bounds& bounds, std::string_view text) {
  for (size_t i = 0; i < bounds.choices.size(); ++i) {
    if (bounds.choices[i] != text) continue;
    value = static_cast<T>(i);
    return true;
  }
  return false;
}
template <Choice T>
std::string value_text(T value, const Bounds& bounds) {
  return std::string(bounds.choices[static_cast<size_t>(value)]);
}
template <Choice T>
std::string expected_text(const T&, const Bounds& bounds) {
  return joined_choices(bounds.choices);
}

template <class T>
bool read_value(std::optional<T>& value, const Bounds& bounds, std::string_view text) {
  T inner{};
  if (!read_value(inner, bounds, text)) return false;
  value = inner;
  return true;
}
template <class T>
std::string value_text(const std::optional<T>& value, const Bounds& bounds) {
  return value ? value_text(*value, bounds) : std::string();
}
template <class T>
std::string expected_text(const std::optional<T>&, const Bounds& bounds) {
  return expected_text(T{}, bounds);
}

template <auto Member, class Line>
constexpr Argument<Line> argument(std::string_view name, bool positional, bool required, Bounds bounds) {
  return {
      name,
      positional,
      required,
      bounds,
      [](Line& line, const Bounds& b, std::string_view text) { return read_value(line.*Member, b, text); },
      [](const Line& line, const Bounds& b) { return value_text(line.*Member, b); },
      [](const Line& line) { return line.*Member == Line{}.*Member; },
      [](const Bounds& b) { return expected_text(Line{}.*Member, b); }};
}

template <class Line>
std::vector<std::string_view> keys_of(std::span<const Argument<Line>> table) {
  std::vector<std::string_view> keys;
  for (const Argument<Line>& row : table) {
    if (!row.positional) keys.push_back(row.name);
  }
  return keys;
}

// The row that a word fills: by its key, or the next positional one; table.size() if there is none.
template <class Line>
size_t row_of(std::span<const Argument<Line>> table, std::optional<std::string_view> key,
              size_t positionals) {
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].positional != key.has_value() && (key ? table[i].name == *key : positionals-- == 0))
      return i;
  }
  return table.size();
}

template <class Line>
std::string unexpected_word(std::span<const Argument<Line>> table, std::string_view word, bool keyed) {
  const std::vector<std::string_view> keys = keys_of(table);
  const std::string found = ", found " + in_quotes(word) + nearest_hint(word, keys);
  if (keys.empty()) return "expected the end of the line" + found;
  return keyed ? "expected the key " + joined_choices(keys) + found : "expected key=value" + found;
}

// Reads the words of a line after the first ones into `line`. Returns an empty string, or what was expected
// and found.
template <class Line>
std::string read_arguments(Line& line, std::span<const Argument<Line>> table,
                           std::span<const std::string_view> words) {
  std::vector<bool> given(table.size(), false);
  size_t positionals = 0;
  bool keys_began = false;
  for (std::string_view word : words) {
    const size_t equals = word.find('=');
    const bool keyed = equals != std::string_view::npos;
    keys_began |= keyed;
    if (!keyed && keys_began) return unexpected_word(table, word, false);
    const std::string_view key = keyed ? word.substr(0, equals) : std::string_view();
    const size_t i =
        keyed ? row_of(table, std::optional(key), 0) : row_of(table, std::nullopt, positionals++);
    if (i == table.size()) return unexpected_word(table, keyed ? key : word, keyed);
    const Argument<Line>& row = table[i];
    if (given[i]) return "expected " + std::string(row.name) + "= once, found it twice";
    given[i] = true;
    const std::string_view value = keyed ? word.substr(equals + 1) : word;
    if (row.read(line, row.bounds, value)) continue;
    return "expected " + std::string(row.name) + (keyed ? "= to be " : " to be ") + row.expected(row.bounds) +
           ", found " + in_quotes(value) + nearest_hint(value, row.bounds.choices);
  }
  for (size_t i = 0; i < table.size(); ++i) {
    if (given[i] || !table[i].required) continue;
    const std::string name = std::string(table[i].name) + (table[i].positional ? "" : "=");
    return "expected " + name + " (" + table[i].expected(table[i].bounds) + "), found nothing";
  }
  return {};
}

// " argument key=value ...": what differs from the initial values, and everything that is required.
template <class Line>
std::string arguments_text(const Line& line, std::span<const Argument<Line>> table) {
  std::string result;
  for (const Argument<Line>& row : table) {
    if (row.initial(line) && !row.required) continue;
    result += ' ';
    if (!row.positional) result.append(row.name).append("=");
    result += row.text(line, row.bounds);
  }
  return result;
}

}  // namespace gatherfuzz
