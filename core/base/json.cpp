#include "core/base/json.h"

#include <nlohmann/json.hpp>

namespace pmaptrain {

using Json = nlohmann::ordered_json;

Json parse_json(std::string_view text) { return Json::parse(text); }

Json try_parse_json(std::string_view text) { return Json::parse(text, nullptr, false); }

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string json_string(std::string_view text) { return json_text(Json(text)); }

}  // namespace pmaptrain
