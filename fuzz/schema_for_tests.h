// JSON against a schema of ci/: the part of JSON Schema that those use.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

namespace gatherfuzz {

// What is wrong with it; empty if nothing.
inline std::string schema_problem(const nlohmann::json& value, const nlohmann::json& schema,
                                  const std::string& where = "");

inline bool has_type(const nlohmann::json& value, const nlohmann::json& types) {
  if (types.is_array())
    return std::any_of(types.begin(), types.end(), [&](const auto& type) { return has_type(value, type); });
  return types == value.type_name() || (types == "integer" && value.is_number_integer());
}

inline std::string object_problem(const nlohmann::json& value, const nlohmann::json& schema,
                                  const std::string& where) {
  const nlohmann::json properties = schema.value("properties", nlohmann::json::object());
  for (const auto& name : schema.value("required", nlohmann::json::array())) {
    if (!value.contains(name.get<std::string>()))
      return where + ": " + name.get<std::string>() + " is missing";
  }
  for (const auto& [name, member] : value.items()) {
    const nlohmann::json others = schema.value("additionalProperties", nlohmann::json(true));
    const nlohmann::json rule = properties.contains(name) ? properties[name] : others;
    if (rule == false) return where + ": " + name + " is not of the schema";
    if (!rule.is_object()) continue;
    if (const std::string problem = schema_problem(member, rule, where + "/" + name); !problem.empty())
      return problem;
  }
  return "";
}

inline std::string schema_problem(const nlohmann::json& value, const nlohmann::json& schema,
                                  const std::string& where) {
  if (schema.contains("type") && !has_type(value, schema["type"]))
    return where + ": expected " + schema["type"].dump() + ", found " + value.dump();
  if (schema.contains("const") && value != schema["const"])
    return where + ": expected " + schema["const"].dump() + ", found " + value.dump();
  if (schema.contains("enum") &&
      std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
    return where + ": expected one of " + schema["enum"].dump() + ", found " + value.dump();
  if (schema.contains("pattern") && value.is_string() &&
      !std::regex_search(value.get<std::string>(), std::regex(schema["pattern"].get<std::string>())))
    return where + ": expected " + schema["pattern"].dump() + ", found " + value.dump();
  if (schema.contains("minimum") && value.is_number() &&
      value.get<double>() < schema["minimum"].get<double>())
    return where + ": expected at least " + schema["minimum"].dump() + ", found " + value.dump();
  if (value.is_array() && schema.contains("items")) {
    for (const auto& item : value) {
      if (const std::string problem = schema_problem(item, schema["items"], where + "[]"); !problem.empty())
        return problem;
    }
  }
  if (schema.contains("oneOf")) {
    std::string problems;
    int fits = 0;
    for (const auto& one : schema["oneOf"]) {
      const std::string problem = schema_problem(value, one, where);
      fits += problem.empty() ? 1 : 0;
      problems += "\n  " + problem;
    }
    if (fits != 1) return where + ": fits " + std::to_string(fits) + " of oneOf:" + problems;
  }
  return value.is_object() ? object_problem(value, schema, where) : "";
}

}  // namespace gatherfuzz
