// Lines, words and characters of program files.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace gatherfuzz {

using Words = std::vector<std::string_view>;

inline constexpr std::string_view kBlank = " \t";

// Without blanks at both ends.
std::string_view trimmed(std::string_view text);

// What stands between blanks.
Words words_of(std::string_view text);

// The number of characters of UTF-8 text; nothing if it is not UTF-8 or has control characters other than
// tabs.
std::optional<size_t> character_count(std::string_view text);

}  // namespace gatherfuzz
