#include "fuzz/targets/environment.h"

#include <cstdlib>
#include <sstream>

#include "fuzz/engine_messages.h"
#include "fuzz/exit_code.h"
#include "fuzz/output.h"
#include "impl/training/flag_text.h"

namespace gatherfuzz {

namespace {

std::string value_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

template <class Read>
auto or_exit(const std::string& prefix, Read read) {
  try {
    return read();
  } catch (const UsageError& error) {
    print_note(prefix + error.what());
    std::exit(kExitUsage);
  }
}

std::optional<FaultSpec> read_fault() {
  const std::string text = value_of(kFaultVariable);
  if (text.empty()) return std::nullopt;
  return parse_fault(text);
}

std::vector<FlagSetting> read_flags() {
  std::istringstream text(value_of(kSetVariable));
  const std::vector<FlagSetting> set =
      parse_settings({std::istream_iterator<std::string>(text), std::istream_iterator<std::string>()});
  Flags unused;
  apply_settings(unused, set);
  return set;
}

std::optional<int> read_socket() {
  const std::string text = value_of(kReportVariable);
  if (text.empty()) return std::nullopt;
  const std::optional<double> number = parse_real(text);
  if (!number) throw UsageError("expected the number of a socket, found " + in_quotes(text));
  return static_cast<int>(*number);
}

}  // namespace

const std::optional<FaultSpec>& planted_fault() {
  static const auto fault = or_exit(std::string(kFaultVariable) + ": ", read_fault);
  return fault;
}

const std::vector<FlagSetting>& flags_of_all() {
  static const auto flags = or_exit(std::string(kSetVariable) + ": ", read_flags);
  return flags;
}

std::optional<int> report_socket() {
  static const auto socket = or_exit(std::string(kReportVariable) + ": ", read_socket);
  return socket;
}

Ablation left_out() {
  return or_exit("", ablation);
}

}  // namespace gatherfuzz
