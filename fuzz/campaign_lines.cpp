#include "fuzz/campaign_lines.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "fuzz/version.h"
#include "properties/shapes.h"

namespace gatherfuzz {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "gatherfuzz-log-1";

Json object_of(const char* kind, double seconds) {
  return {{"schema", kSchema}, {"kind", kind}, {"seconds", seconds}};
}

std::string line_of(const Json& object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Each option that bounds or steers the campaign; null: it was not given.
Json settings_of(const CampaignOptions& options) {
  Json set = Json::object();
  for (const auto& [name, value] : options.set) set[name] = value;
  return {{"runs", options.runs ? Json(*options.runs) : Json()},
          {"time", std::isfinite(options.seconds) ? Json(options.seconds) : Json()},
          {"jobs", options.jobs},
          {"corpus", options.corpus.empty() ? Json() : Json(options.corpus)},
          {"out", options.out},
          {"keep_going", options.keep_going},
          {"set", set}};
}

void add_figures(Json& object, const CampaignFigures& figures) {
  const CampaignCounts& counts = figures.counts;
  object["programs"] = counts.programs;
  object["programs_per_second"] =
      figures.seconds > 0.0 ? static_cast<double>(counts.programs) / figures.seconds : 0.0;
  for (std::size_t i = 0; i < counts.verdicts.size(); ++i)
    object["verdicts"][std::string(kVerdictNames[i])] = counts.verdicts[i];
  for (std::size_t i = 0; i < counts.runs.size(); ++i)
    object["runs"][std::string(kRuntimeNames[i])] = counts.runs[i];
  object["twins"] = counts.twins;
  object["states"] = figures.states;
  object["programs_kept"] = figures.kept;
  object["failures"] = counts.of(Verdict::fail);
  object["kinds"] = figures.kinds;
  object["known"] = figures.known;
  object["action_pairs"] = counts.pairs.size();
  object["legal_action_pairs"] = number_of_legal_action_pairs();
}

}  // namespace

std::string begin_line(const CampaignOptions& options, double seconds) {
  Json object = object_of("begin", seconds);
  object["resumed"] = options.resume;
  object["version"] = version_text();
  object["commit"] = version_parts().commit;
  object["engine"] = name_of(options.engine);
  object["seed"] = options.seed.text;
  object["runtimes"] = Json::array();
  for (const RuntimeKind runtime : options.runtimes) object["runtimes"].push_back(name_of(runtime));
  object["fault"] = options.fault ? Json(fault_text(options)) : Json();
  object["settings"] = settings_of(options);
  return line_of(object);
}

std::string progress_line(const CampaignFigures& figures) {
  Json object = object_of("progress", figures.seconds);
  add_figures(object, figures);
  return line_of(object);
}

std::string failure_line(const LoggedFailure& failure) {
  Json object = object_of("failure", failure.seconds);
  object["class"] = failure.failure_class;
  object["signature"] = failure.signature;
  object["runtime"] = failure.runtime;
  object["program"] = failure.program;
  object["known"] = failure.known;
  object["file"] = failure.file;
  object["block"] = failure.block;
  return line_of(object);
}

std::string end_line(const CampaignFigures& figures, int exit_code) {
  Json object = object_of("end", figures.seconds);
  add_figures(object, figures);
  object["shapes"] = Json::object();
  for (std::size_t i = 0; i < figures.counts.shapes.size(); ++i)
    object["shapes"][std::string(interesting_shapes()[i].name)] = figures.counts.share_of_shape(i);
  object["exit_code"] = exit_code;
  return line_of(object);
}

CampaignHistory read_history(const std::string& log, double seconds) {
  CampaignHistory history;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const Json object = Json::parse(line, nullptr, false);
    try {
      if (object.at("schema") != kSchema) continue;
      const std::string kind = object.at("kind");
      const double at = object.at("seconds");
      if (kind == "begin" && !object.at("resumed").get<bool>()) history = {};
      if (at > seconds) continue;
      if (kind == "progress") history.points.push_back({at, object.at("programs"), object.at("states")});
      if (kind == "failure")
        history.failures.push_back({object.at("class"), object.at("signature"), object.at("runtime"),
                                    object.at("file"), object.at("block"), object.at("program"),
                                    object.at("known"), at});
    } catch (const Json::exception&) {
      continue;  // no line of ours
    }
  }
  return history;
}

}  // namespace gatherfuzz
