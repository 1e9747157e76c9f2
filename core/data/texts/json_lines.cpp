#include "core/data/texts/json_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/base/utf8.h"

namespace pmaptrain::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* one_a_line =
    "each line is one object, such as {\"text\": \"...\"}; only files that are called .jsonl or .ndjson are read so";

std::string shown_kind(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_string()) return "a text";
  if (value.is_number()) return "a number";
  return value.is_null() ? "null" : "true or false";
}

// "its texts are 'body' and 'title': ..." Of a line that is an object.
std::string other_fields(std::string_view line) {
  constexpr int most = 8;  // that are listed
  std::vector<std::string> names;
  int seen = 0;
  const Json object = parse_members(line, [&](const std::string&) { return seen++ < most; });
  for (const auto& [name, value] : object.items()) {
    if (value.is_string()) names.push_back("'" + shown_name(name) + "'");
  }
  if (names.empty()) return "field: NAME says which field of the objects is the text";
  return "field: NAME says which one is the text; fields with texts: " + join(names, ", ");
}

}  // namespace

void JsonLines::fail(const std::string& what, std::string help) const {
  fail_data(fmt::format("'{}', line {}: {}", path_, line_, what), std::move(help));
}

std::optional<std::string_view> JsonLines::next_line() {
  constexpr std::size_t chunk = std::size_t{64} << 10;
  while (true) {
    const std::size_t end = buffer_.find('\n', searched_);
    const bool is_last = end == std::string::npos && has_ended_;
    if (is_last && begin_ == buffer_.size()) return std::nullopt;
    if (end != std::string::npos || is_last) {
      const std::size_t begin = begin_, stop = is_last ? buffer_.size() : end;
      begin_ = searched_ = is_last ? stop : stop + 1;
      ++line_;
      return std::string_view(buffer_).substr(begin, stop - begin);
    }
    buffer_.erase(0, begin_);
    begin_ = 0;
    searched_ = buffer_.size();
    if (searched_ > longest_) {
      ++line_;
      fail(fmt::format("it has more than {}", human_bytes(longest_)), one_a_line);
    }
    buffer_.resize(searched_ + chunk);
    const std::size_t count = pull_(std::as_writable_bytes(std::span(buffer_).subspan(searched_)));
    has_ended_ = count < chunk;
    buffer_.resize(searched_ + count);
  }
}

std::string JsonLines::document_of(std::string_view line) const {
  Json json;
  try {
    json = parse_members(line, [&](const std::string& key) { return key == field_; });
  } catch (const Json::parse_error& error) {
    fail(fmt::format("it is not JSON; the mistake is at byte {}", error.byte), one_a_line);
  } catch (const Json::out_of_range&) {
    fail("it has a number that is too large", "numbers are at most 1.8e308 in size");
  }
  if (!json.is_object()) fail("it is " + shown_kind(json) + ", expected an object", one_a_line);
  const auto found = json.find(field_);
  if (found == json.end()) fail("its object has no field '" + shown_name(field_) + "'", other_fields(line));
  if (!found->is_string()) {
    fail("its field '" + shown_name(field_) + "' is " + shown_kind(*found) + ", expected a text", other_fields(line));
  }
  return std::move(found->get_ref<std::string&>());
}

std::optional<std::string> JsonLines::next() {
  while (const std::optional<std::string_view> line = next_line()) {
    if (line->find_first_not_of(" \t\r") != std::string_view::npos) return document_of(*line);
  }
  return std::nullopt;
}

}  // namespace pmaptrain::data
