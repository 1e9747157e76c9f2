// Reading and writing JSON. The library's parser and writer are compiled here alone: each takes long.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace pmaptrain {

// Objects keep the order of their keys. Throws nlohmann::json::parse_error for a text that is no JSON.
nlohmann::ordered_json parse_json(std::string_view text);

// The same, but is_discarded() for a text that is no JSON.
nlohmann::ordered_json try_parse_json(std::string_view text);

// In one line, or with so many spaces a level. Bytes that are no UTF-8 are replaced by U+FFFD.
std::string json_text(const nlohmann::ordered_json& json, int indent = -1);
// A string of JSON, in its quotes.
std::string json_string(std::string_view text);

}  // namespace pmaptrain
