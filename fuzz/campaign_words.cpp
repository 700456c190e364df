// What the options of `gatherfuzz fuzz` mean.
#include <algorithm>
#include <charconv>

#include "fuzz/campaign.h"
#include "fuzz/exit_code.h"
#include "impl/runtime/symbolic/term.h"
#include "impl/training/flag_text.h"

namespace gatherfuzz {

FaultSpec parse_fault(const std::string& text) {
  const ParseResult parsed = parse_program("gatherfuzz program v1\nfault " + text + "\n");
  if (!parsed.ok()) throw UsageError("--fault: " + parsed.errors.front().message);
  if (parsed.program->faults.size() != 1)
    throw UsageError("--fault: expected one fault, found " + in_quotes(text));
  return parsed.program->faults.front();
}

std::string fault_text(const CampaignOptions& options) {
  if (!options.fault) return "";
  const std::string line = print_fault(*options.fault);
  return line.substr(line.find(' ') + 1);
}

std::vector<FlagSetting> parse_settings(const std::vector<std::string>& words) {
  std::vector<FlagSetting> settings;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) throw UsageError("--set: expected name=value, found " + in_quotes(word));
    settings.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return settings;
}

double parse_duration(const std::string& text) {
  const std::size_t unit = text.find_first_of("smh");
  const double factor = unit == std::string::npos ? 1.0
                        : text[unit] == 's'       ? 1.0
                        : text[unit] == 'm'       ? 60.0
                                                  : 3600.0;
  const std::optional<double> number = parse_real(text.substr(0, unit));
  if (!number || *number <= 0 || (unit != std::string::npos && unit + 1 != text.size()))
    throw UsageError("--time: expected a duration such as 45s, 10m or 8h, found " + in_quotes(text));
  return *number * factor;
}

CampaignSeed parse_seed(const std::string& text) {
  constexpr std::size_t kCommitDigits = 40;
  constexpr std::size_t kDigitsOfAPart = 10;  // each part fits 64 bits
  CampaignSeed seed{0, text};
  const char* end = text.data() + text.size();
  const auto reads_all = [](const char* from, const char* to, uint64_t& number, int base) {
    const auto [stop, error] = std::from_chars(from, to, number, base);
    return error == std::errc() && stop == to;
  };
  if (text.size() != kCommitDigits) {
    if (reads_all(text.data(), end, seed.number, 10)) return seed;
  } else {
    bool is_commit = true;
    for (const char* part = text.data(); part != end; part += kDigitsOfAPart) {
      uint64_t number = 0;
      is_commit = is_commit && reads_all(part, part + kDigitsOfAPart, number, 16);
      seed.number = mix(seed.number, number);
    }
    if (is_commit) return seed;
  }
  throw UsageError("--seed: expected a number below 2^64, or a commit of 40 hexadecimal digits, found " +
                   in_quotes(text));
}

}  // namespace gatherfuzz
