#include "core/data/tables/json_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/machine.h"
#include "core/base/text.h"
#include "core/base/utf8.h"

namespace pmaptrain::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* one_a_line =
    "each line has one object, such as {\"text\": \"...\", \"label\": \"a\"}; jq -c '.[]' OLD.json > NEW.jsonl makes "
    "lines "
    "of a list";

// The object of a line. Throws Error (data), which says what is wrong with it.
Json object_of(std::string_view line, const std::string& where) {
  constexpr int deepest = 64;
  if (is_nested_deeper(line, deepest)) fail_data(where + "lists and objects are nested too deeply", one_a_line);
  try {
    Json object = parse_json(line);
    if (!object.is_object()) fail_data(where + "it is no object of JSON", one_a_line);
    return object;
  } catch (const Json::parse_error& error) {
    fail_data(fmt::format("{}it is not JSON; the mistake is at byte {}", where, error.byte), one_a_line);
  } catch (const Json::out_of_range&) {
    fail_data(where + "it has a number that is too large", "numbers are at most 1.8e308 in size");
  }
}

// Calls `take(line number, object)` for each line that is not blank.
template <class Take>
void each_object(const std::string& path, std::string_view text, Take&& take) {
  std::int64_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    take(number, object_of(line, fmt::format("'{}', line {}: ", path, number)));
  }
}

std::string cell_of(const Json& value) {
  if (value.is_null()) return {};
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

void append_cell(const std::string& cell, char delimiter, std::string& to) {
  const std::array special = {delimiter, '"', '\n', '\r', ' ', '\t', '\0'};
  if (cell.find_first_of(std::string_view(special.data(), special.size())) == std::string::npos) {
    to += cell;
    return;
  }
  to += '"';
  for (const char c : cell) {
    if (c == '"') to += '"';
    to += c;
  }
  to += '"';
}

}  // namespace

bool has_json_lines(const std::string& path) {
  std::string name = path;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  return name.ends_with(".jsonl") || name.ends_with(".ndjson");
}

TableText rows_of_json(const std::string& path, const Bytes& text, char delimiter, const std::string& text_key) {
  constexpr std::size_t most_keys = 4096;
  const std::string_view chars = as_chars(text.view());
  std::vector<std::string> keys;
  std::map<std::string, std::size_t> at;
  std::size_t bytes = 0, rows = 1;  // at most
  each_object(path, chars, [&](std::int64_t line, const Json& object) {
    ++rows;
    for (const auto& [key, value] : object.items()) {
      if (key == text_key && value.is_structured()) {
        fail_data(fmt::format("'{}', line {}: '{}' is {}, expected a text", path, line, shown_name(key),
                              value.is_array() ? "a list" : "an object"),
                  "join its parts to one text");
      }
      bytes += 2 * cell_of(value).size() + 2;
      if (!at.emplace(key, keys.size()).second) continue;
      keys.push_back(key);
      bytes += 2 * key.size() + 2;
      if (keys.size() > most_keys) {
        fail_data(
            fmt::format("'{}', line {}: the objects have more than {} keys by now", path, line, with_commas(most_keys)),
            "each key is a column of the table: the same ones in each line");
      }
    }
  });
  bytes += rows * (keys.size() + 1);
  demand_memory(bytes, fmt::format("'{}' as a table", path));
  auto table_text = std::make_shared<std::string>();
  table_text->reserve(bytes);
  TableText table{path, {}, {0}};
  const auto append_row = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) *table_text += delimiter;
      append_cell(cells[i], delimiter, *table_text);
    }
    // A line without a character would be passed over.
    if (cells.size() == 1 && cells.front().empty()) *table_text += "\"\"";
    *table_text += '\n';
  };
  append_row(keys);
  std::vector<std::string> cells(keys.size());
  each_object(path, chars, [&](std::int64_t line, const Json& object) {
    for (std::string& cell : cells) cell.clear();
    for (const auto& [key, value] : object.items()) cells[at.at(key)] = cell_of(value);
    append_row(cells);
    table.lines.push_back(line);
  });
  text.check_intact();
  const std::span<const char> view(*table_text);
  table.text = Bytes(std::move(table_text), std::as_bytes(view));
  return table;
}

}  // namespace pmaptrain::data
