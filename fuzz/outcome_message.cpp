#include "fuzz/outcome_message.h"

#include <nlohmann/json.hpp>

namespace gatherfuzz {

namespace {

constexpr std::size_t kLongestText = 8 * 1024;

// Enums as numbers: both ends are the same binary.
template <class Enum>
nlohmann::json number_or_null(const std::optional<Enum>& value) {
  return value ? nlohmann::json(static_cast<int>(*value)) : nlohmann::json();
}

template <class Enum>
std::optional<Enum> enum_or_nothing(const nlohmann::json& value) {
  if (value.is_null()) return std::nullopt;
  return static_cast<Enum>(value.get<int>());
}

}  // namespace

std::string to_message(const Outcome& outcome) {
  nlohmann::json message = {{"verdict", static_cast<int>(outcome.verdict)},
                            {"failure", number_or_null(outcome.failure)},
                            {"reason", number_or_null(outcome.reason)},
                            {"also", nlohmann::json::array()},
                            {"text", outcome.text.substr(0, kLongestText)},
                            {"op", outcome.op},
                            {"what", outcome.what},
                            {"twin", number_or_null(outcome.twin)},
                            {"rank", outcome.rank},
                            {"iteration", outcome.iteration},
                            {"signature", outcome.signature},
                            {"steps", outcome.steps},
                            {"ops", outcome.ops},
                            {"gradients_compared", outcome.gradients_compared},
                            {"weights_compared", outcome.weights_compared},
                            {"worst_share", outcome.worst_share},
                            {"states", outcome.states},
                            {"seconds", outcome.seconds}};
  message["expected"] = outcome.expected;
  message["found"] = outcome.found;
  message["missing"] = outcome.story.missing;
  message["writers"] = nlohmann::json::array();
  for (const Writer& w : outcome.story.last_writers)
    message["writers"].push_back({w.iteration, w.rank, w.stream, w.op, w.what, w.graph});
  for (const FailureClass other : outcome.also) message["also"].push_back(static_cast<int>(other));
  const std::vector<uint8_t> bytes = nlohmann::json::to_cbor(message);  // keeps any bytes and infinities
  return {bytes.begin(), bytes.end()};
}

Outcome from_message(std::string_view bytes) {
  const nlohmann::json message = nlohmann::json::from_cbor(bytes.begin(), bytes.end());
  Outcome outcome;
  outcome.verdict = static_cast<Verdict>(message.at("verdict").get<int>());
  outcome.failure = enum_or_nothing<FailureClass>(message.at("failure"));
  outcome.reason = enum_or_nothing<RefusalReason>(message.at("reason"));
  for (const nlohmann::json& other : message.at("also"))
    outcome.also.push_back(static_cast<FailureClass>(other.get<int>()));
  message.at("expected").get_to(outcome.expected);
  message.at("found").get_to(outcome.found);
  message.at("missing").get_to(outcome.story.missing);
  for (const nlohmann::json& w : message.at("writers"))
    outcome.story.last_writers.push_back({w[0].get<int>(), w[1].get<int>(), w[2].get<std::string>(),
                                          w[3].get<std::string>(), w[4].get<std::string>(), w[5].get<int>()});
  message.at("text").get_to(outcome.text);
  message.at("op").get_to(outcome.op);
  message.at("what").get_to(outcome.what);
  outcome.twin = enum_or_nothing<TwinKind>(message.at("twin"));
  message.at("rank").get_to(outcome.rank);
  message.at("iteration").get_to(outcome.iteration);
  message.at("signature").get_to(outcome.signature);
  message.at("steps").get_to(outcome.steps);
  message.at("ops").get_to(outcome.ops);
  message.at("gradients_compared").get_to(outcome.gradients_compared);
  message.at("weights_compared").get_to(outcome.weights_compared);
  message.at("worst_share").get_to(outcome.worst_share);
  message.at("states").get_to(outcome.states);
  message.at("seconds").get_to(outcome.seconds);
  return outcome;
}

}  // namespace gatherfuzz
