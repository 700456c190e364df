#include "properties/program_text.h"

#include <algorithm>

namespace gatherfuzz {

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

Words words_of(std::string_view text) {
  Words words;
  size_t begin = text.find_first_not_of(kBlank);
  while (begin != std::string_view::npos) {
    const size_t end = std::min(text.find_first_of(kBlank, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kBlank, end);
  }
  return words;
}

// The number of characters of UTF-8 text; nothing if it is not UTF-8 or has control characters other than
// tabs.
std::optional<size_t> character_count(std::string_view text) {
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++count) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if ((lead < 0x20 && lead != '\t') || lead == 0x7F) return std::nullopt;
    const size_t bytes = lead < 0x80                   ? 1
                         : lead >= 0xC2 && lead < 0xE0 ? 2
                         : lead >= 0xE0 && lead < 0xF0 ? 3
                                                       : 4;
    if (bytes == 4 && (lead < 0xF0 || lead > 0xF4)) return std::nullopt;
    if (text.size() - i < bytes) return std::nullopt;
    for (size_t k = 1; k < bytes; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) return std::nullopt;
    }
    i += bytes;
  }
  return count;
}

}  // namespace gatherfuzz
