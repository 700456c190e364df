#include "fuzz/campaign_state.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "fuzz/exit_code.h"
#include "impl/runtime/symbolic/term.h"
#include "impl/training/flag_text.h"

namespace gatherfuzz {

namespace {

constexpr const char* kSchema = "gatherfuzz-state-1";

std::string checksum_line(std::string_view bytes) {
  uint64_t hash = bytes.size();
  for (const char c : bytes) hash = mix(hash, static_cast<unsigned char>(c));
  char line[40];
  std::snprintf(line, sizeof line, "checksum %016llx\n", static_cast<unsigned long long>(hash));
  return line;
}

template <std::size_t N>
void read_counters(const nlohmann::ordered_json& from, std::array<uint64_t, N>& to) {
  if (from.size() != N) throw UsageError("it is of another version");
  for (std::size_t i = 0; i < N; ++i) to[i] = from.at(i).get<uint64_t>();
}

CampaignState read_object(const nlohmann::ordered_json& object) {
  CampaignState state;
  if (object.at("schema") != kSchema) throw UsageError("it is of another version");
  for (const auto& [name, value] : object.at("settings").items())
    state.settings.emplace_back(name, value.get<std::string>());
  state.seconds = object.at("seconds").get<double>();
  CampaignCounts& counts = state.counts;
  counts.programs = object.at("programs").get<uint64_t>();
  counts.twins = object.at("twins").get<uint64_t>();
  read_counters(object.at("verdicts"), counts.verdicts);
  read_counters(object.at("runs"), counts.runs);
  const auto shapes = object.at("shapes").get<std::vector<uint64_t>>();
  if (shapes.size() != counts.shapes.size()) throw UsageError("it is of another version");
  counts.shapes = shapes;
  for (const auto& pair : object.at("pairs"))
    counts.pairs.emplace(static_cast<ActionKind>(pair.at(0).get<int>()),
                         static_cast<ActionKind>(pair.at(1).get<int>()));
  for (const auto& kept : object.at("kept"))
    state.kept.push_back({kept.at(0).get<uint64_t>(), kept.at(1).get<std::size_t>()});
  state.states = object.at("states").get<std::vector<uint32_t>>();
  state.built_on = object.at("built_on").get<std::vector<std::size_t>>();
  state.kinds = object.at("kinds").get<std::set<std::string>>();
  state.known = object.at("known").get<uint64_t>();
  return state;
}

}  // namespace

std::string print_state(const CampaignState& state) {
  nlohmann::ordered_json object;
  object["schema"] = kSchema;
  object["settings"] = nlohmann::ordered_json::object();
  for (const auto& [name, value] : state.settings) object["settings"][name] = value;
  object["seconds"] = state.seconds;
  object["programs"] = state.counts.programs;
  object["twins"] = state.counts.twins;
  object["verdicts"] = state.counts.verdicts;
  object["runs"] = state.counts.runs;
  object["shapes"] = state.counts.shapes;
  object["pairs"] = nlohmann::ordered_json::array();
  for (const auto& [previous, next] : state.counts.pairs)
    object["pairs"].push_back({static_cast<int>(previous), static_cast<int>(next)});
  object["kept"] = nlohmann::ordered_json::array();
  for (const KeptProgram& kept : state.kept) object["kept"].push_back({kept.number, kept.built_on});
  object["states"] = state.states;
  object["built_on"] = state.built_on;
  object["kinds"] = state.kinds;
  object["known"] = state.known;
  const std::string line =
      object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  return line + checksum_line(line);
}

CampaignState parse_state(const std::string& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string::npos || text.substr(end + 1) != checksum_line(text.substr(0, end + 1)))
    throw UsageError("it is damaged: its checksum does not fit");
  try {
    return read_object(nlohmann::ordered_json::parse(text.substr(0, end)));
  } catch (const nlohmann::ordered_json::exception& error) {
    throw UsageError(std::string("it is of another version: ") + error.what());
  }
}

void require_same_settings(const Settings& before, const Settings& now) {
  for (std::size_t i = 0; i < now.size(); ++i) {
    const auto& [name, value] = now[i];
    if (i >= before.size() || before[i].first != name)
      throw UsageError("--resume: it began with another version of gatherfuzz");
    if (before[i].second != value)
      throw UsageError("--resume: " + name + ": expected " + in_quotes(before[i].second) +
                       ", as the campaign began with, found " + in_quotes(value));
  }
}

}  // namespace gatherfuzz
