#include "fuzz/report.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "fuzz/output.h"

namespace gatherfuzz {

namespace {

constexpr const char* kSchema = "gatherfuzz-check-1";

std::string padded(std::string_view text, std::size_t width) {
  std::string result(text);
  result.resize(std::max(width, text.size()), ' ');
  return result;
}

std::string counted(uint64_t number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

}  // namespace

std::string verdict_text(const Outcome& o) {
  std::string text(name_of(o.verdict));
  if (o.failure) text.append(": ").append(name_of(*o.failure));
  if (o.reason) text.append(": ").append(name_of(*o.reason));
  return text;
}

std::string signature_text(const Outcome& outcome) {
  char text[20];
  std::snprintf(text, sizeof text, "%08llx", static_cast<unsigned long long>(outcome.signature));
  return text;
}

std::string outcome_line(const Judgement& j) {
  const Outcome& o = j.outcome;
  std::string line = padded(name_of(o.verdict), 10) + padded(name_of(j.runtime), 10) + j.file;
  if (o.failure) line += "  " + std::string(name_of(*o.failure));
  if (o.reason) line += "  " + std::string(name_of(*o.reason));
  if (o.verdict == Verdict::error) return line;
  return line + "  (" + counted(static_cast<uint64_t>(o.steps), "step") + ", " + counted(o.ops, "op") + ", " +
         fixed_text(o.seconds * 1e3, 1) + " ms)";
}

std::string explanation(const Judgement& j) {
  const Outcome& o = j.outcome;
  std::string text;
  if (o.verdict == Verdict::error) return text;
  const auto add = [&text](const std::string& line) {
    text.append(text.empty() ? "    " : "\n    ").append(line);
  };
  if (!j.as_expected && !j.expected.empty()) add("expected " + j.expected + ", found " + verdict_text(o));
  if (o.failure) {
    add(std::string(name_of(*o.failure)) + ", iteration " + std::to_string(o.iteration) + ", rank " +
        std::to_string(o.rank) + ", signature " + signature_text(o));
  }
  if ((o.failure || !j.as_expected) && !o.text.empty()) add(o.text);
  if (!o.also.empty()) {
    std::string also = "also";
    for (const FailureClass other : o.also) also.append(" ").append(name_of(other));
    add(also);
  }
  return text;
}

std::string outcome_json(const Judgement& j) {
  const Outcome& o = j.outcome;
  nlohmann::ordered_json object;
  const auto or_null = [](bool given, nlohmann::ordered_json value) {
    return given ? std::move(value) : nlohmann::ordered_json();
  };
  object["schema"] = kSchema;
  object["file"] = j.file;
  object["runtime"] = name_of(j.runtime);
  object["verdict"] = name_of(o.verdict);
  object["expected"] = or_null(!j.expected.empty(), j.expected);
  object["as_expected"] = j.as_expected;
  object["class"] = o.failure ? nlohmann::ordered_json(name_of(*o.failure)) : nlohmann::ordered_json();
  object["also"] = nlohmann::ordered_json::array();
  for (const FailureClass other : o.also) object["also"].push_back(name_of(other));
  object["reason"] = o.reason ? nlohmann::ordered_json(name_of(*o.reason)) : nlohmann::ordered_json();
  object["line"] = or_null(j.line > 0, j.line);
  object["iteration"] = or_null(o.failure.has_value(), o.iteration);
  object["rank"] = or_null(o.failure.has_value(), o.rank);
  object["evidence"] = o.text;
  object["signature"] = or_null(o.failure.has_value(), signature_text(o));
  object["steps"] = o.steps;
  object["ops"] = o.ops;
  object["seconds"] = o.seconds;
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace gatherfuzz
