// Words and numbers as people type them, shared by flags and program files: strict parsing, shortest
// printing, and the nearest known name for an unknown one. Nothing here depends on the locale, and no input
// is too long.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gatherfuzz {

// Decimal digits only; nothing if there is anything else or the value does not fit.
std::optional<uint64_t> parse_whole(std::string_view text);
// A finite decimal number such as 0.001, 1e-8, -2; nothing otherwise. Minus zero becomes zero.
std::optional<double> parse_real(std::string_view text);

// The shortest text that parse_real reads back as the same value.
std::string print_real(double value);

// Text in quotes for a message: at most 40 characters, bytes that are not printable ASCII as '.'.
std::string in_quotes(std::string_view text);

// The closest of `names` by edit distance; empty if none is close enough to be meant.
std::string_view nearest_name(std::string_view word, std::span<const std::string_view> names);
// "; nearest: NAME" or nothing.
std::string nearest_hint(std::string_view word, std::span<const std::string_view> names);
// "a, b or c".
std::string joined_choices(std::span<const std::string_view> names);

}  // namespace gatherfuzz
