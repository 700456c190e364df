#include "fuzz/ablation.h"

#include <cstdlib>
#include <string_view>

#include "fuzz/exit_code.h"
#include "impl/training/flag_text.h"

namespace gatherfuzz {

namespace {

constexpr char kVariable[] = "GATHERFUZZ_WITHOUT";
constexpr std::string_view kWords[] = {"mutator", "states"};

}  // namespace

Ablation ablation() {
  const char* value = std::getenv(kVariable);
  const std::string_view text = value == nullptr ? "" : value;
  Ablation without;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    if (word == kWords[0]) {
      without.mutator = true;
    } else if (word == kWords[1]) {
      without.states = true;
    } else {
      throw UsageError(std::string(kVariable) + ": expected " + joined_choices(kWords) + ", found " +
                       in_quotes(word) + nearest_hint(word, kWords));
    }
    begin = end + 1;
  }
  return without;
}

std::string text_of(const Ablation& ablation) {
  std::string text(ablation.mutator ? kWords[0] : "");
  if (ablation.states) text += (text.empty() ? "" : ",") + std::string(kWords[1]);
  return text;
}

}  // namespace gatherfuzz
