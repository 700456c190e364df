#include "impl/training/flag_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <vector>

namespace gatherfuzz {

namespace {

constexpr size_t kQuotedLimit = 40;

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::optional<uint64_t> parse_whole(std::string_view text) {
  return parse_number<uint64_t>(text);
}

std::optional<double> parse_real(std::string_view text) {
  const std::optional<double> value = parse_number<double>(text);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return *value + 0.0;
}

std::string print_real(double value) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return error == std::errc{} ? std::string(buffer, end) : std::string();
}

std::string in_quotes(std::string_view text) {
  std::string result = "'";
  for (char c : text.substr(0, kQuotedLimit)) result += c >= ' ' && c <= '~' ? c : '.';
  return result + (text.size() > kQuotedLimit ? "...'" : "'");
}

std::string_view nearest_name(std::string_view word, std::span<const std::string_view> names) {
  std::string_view best;
  size_t best_distance = 0;
  for (std::string_view name : names) {
    if (word.size() > 2 * name.size() + 2) continue;  // never near, and long words would cost time
    const size_t distance = edit_distance(word, name);
    if (distance > name.size() / 2) continue;
    if (best.empty() || distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

std::string nearest_hint(std::string_view word, std::span<const std::string_view> names) {
  const std::string_view name = nearest_name(word, names);
  return name.empty() ? std::string() : "; nearest: " + std::string(name);
}

std::string joined_choices(std::span<const std::string_view> names) {
  std::string result;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) result += i + 1 == names.size() ? " or " : ", ";
    result += names[i];
  }
  return result;
}

}  // namespace gatherfuzz
