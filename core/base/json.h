// Reading and writing JSON. The library's parser and writer are compiled here alone: each takes long.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace pmaptrain {

// Objects keep the order of their keys. Throws nlohmann::json::parse_error for a text that is no JSON, and
// nlohmann::json::out_of_range for a number that is too large.
nlohmann::ordered_json parse_json(std::string_view text);
// The same, but of an object only the members whose keys `keeps` accepts. The others are read and not stored, so
// neither their number nor their size matters.
nlohmann::ordered_json parse_members(std::string_view text, const std::function<bool(const std::string&)>& keeps);

// The same, but is_discarded() for a text that is no JSON.
nlohmann::ordered_json try_parse_json(std::string_view text);

// In one line, or with so many spaces a level. Bytes that are no UTF-8 are replaced by U+FFFD.
std::string json_text(const nlohmann::ordered_json& json, int indent = -1);
// A string of JSON, in its quotes.
std::string json_string(std::string_view text);

}  // namespace pmaptrain
