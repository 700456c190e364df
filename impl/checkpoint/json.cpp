#include "impl/checkpoint/json.h"

#include <set>
#include <string>
#include <vector>

namespace gatherfuzz {

namespace {

constexpr int kDeepest = 4;

}  // namespace

Checked<Json> parse_json_object(std::string_view text) {
  if (!text.starts_with('{'))
    return CheckpointError{Damage::header, "expected a JSON object, found " + excerpt(text)};
  std::vector<std::set<std::string>> names;  // of the objects that are open
  std::string twice;
  bool too_deep = false;  // for those who walk it by recursion
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    too_deep = too_deep || depth > kDeepest;
    if (event == Json::parse_event_t::object_start) {
      names.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      names.pop_back();
    } else if (event == Json::parse_event_t::key) {
      const auto& name = value.get_ref<const std::string&>();
      if (!names.back().insert(name).second) twice = name;
    }
    return !too_deep;
  };
  Json object = Json::parse(text.begin(), text.end(), watch, false);
  if (too_deep)
    return CheckpointError{Damage::header,
                           "expected objects nested " + std::to_string(kDeepest) + " deep at most"};
  if (object.is_discarded()) return CheckpointError{Damage::header, "expected JSON, found what is not"};
  if (!twice.empty())
    return CheckpointError{Damage::duplicate_name,
                           "expected each name once, found " + excerpt(twice) + " twice"};
  return object;
}

std::string excerpt(std::string_view text) {
  const std::string start(text.substr(0, 40));
  return Json(start).dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace gatherfuzz
