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

// A callback of the parser could tell it, but with a callback the parser searches a list again for each object in it.
bool is_nested_deeper(std::string_view text, int levels) {
  int level = 0;
  bool is_text = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (is_text) {
      if (c == '\\') ++at;
      is_text = c != '"';
    } else if (c == '"') {
      is_text = true;
    } else if (c == '[' || c == '{') {
      if (++level > levels) return true;
    } else if (c == ']' || c == '}') {
      --level;
    }
  }
  return false;
}

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string json_string(std::string_view text) { return json_text(Json(text)); }

}  // namespace pmaptrain
