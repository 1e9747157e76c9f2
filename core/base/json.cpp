#include "core/base/json.h"

#include <nlohmann/json.hpp>

namespace pmaptrain {

using Json = nlohmann::ordered_json;

Json parse_json(std::string_view text) { return Json::parse(text); }

nlohmann::json parse_unordered_json(std::string_view text) { return nlohmann::json::parse(text); }

Json parse_members(std::string_view text, const std::function<bool(const std::string&)>& keeps) {
  return Json::parse(text, [&](int depth, Json::parse_event_t event, Json& parsed) {
    const bool is_member = event == Json::parse_event_t::key && depth == 1;
    return !is_member || keeps(parsed.get_ref<const std::string&>());
  });
}

Json try_parse_json(std::string_view text) { return Json::parse(text, nullptr, false); }

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string json_string(std::string_view text) { return json_text(Json(text)); }

}  // namespace pmaptrain
