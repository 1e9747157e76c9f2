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
// The same with objects whose keys are sorted: an ordered object looks for each key among those before it, which takes
// minutes for a hundred thousand.
nlohmann::json parse_unordered_json(std::string_view text);
// As parse_json(), but of an object only the members whose keys `keeps` accepts. The others are read and not stored, so
// neither their number nor their size matters.
nlohmann::ordered_json parse_members(std::string_view text, const std::function<bool(const std::string&)>& keeps);

// As parse_json(), but is_discarded() for a text that is no JSON.
nlohmann::ordered_json try_parse_json(std::string_view text);

// Whether lists and objects of a text are inside of each other more than so many times. Writing one that is takes as
// much of the stack.
bool is_nested_deeper(std::string_view text, int levels);

// In one line, or with so many spaces a level. Bytes that are no UTF-8 are replaced by U+FFFD.
std::string json_text(const nlohmann::ordered_json& json, int indent = -1);
// A string of JSON, in its quotes.
std::string json_string(std::string_view text);

}  // namespace pmaptrain
