#include "core/data/tables/json_rows.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/base/utf8.h"

namespace pmaptrain::data {
namespace {

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
    const nlohmann::ordered_json object = try_parse_json(line);
    if (!object.is_object()) {
      fail_data(
          fmt::format("'{}', line {}: it is no object of JSON", path, number),
          "each line has one, such as {\"text\": \"...\", \"label\": \"a\"}; jq -c '.[]' OLD.json > NEW.jsonl makes "
          "lines of a list");
    }
    take(number, object);
  }
}

std::string cell_of(const nlohmann::ordered_json& value) {
  if (value.is_null()) return {};
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

void append_cell(const std::string& cell, char delimiter, std::string& to) {
  const char special[] = {delimiter, '"', '\n', '\r', ' ', '\t', '\0'};
  if (cell.find_first_of(special) == std::string::npos) {
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
  std::string_view name = path;
  if (name.ends_with(".gz")) name.remove_suffix(3);
  return name.ends_with(".jsonl") || name.ends_with(".ndjson");
}

TableText rows_of_json(const std::string& path, const Bytes& text, char delimiter) {
  const std::string_view chars = as_chars(text.view());
  std::vector<std::string> keys;
  std::map<std::string, std::size_t> at;
  each_object(path, chars, [&](std::int64_t /*line*/, const nlohmann::ordered_json& object) {
    for (const auto& [key, value] : object.items()) {
      if (at.emplace(key, keys.size()).second) keys.push_back(key);
    }
  });
  auto rows = std::make_shared<std::string>();
  TableText table{path, {}, {0}};
  const auto append_row = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) *rows += delimiter;
      append_cell(cells[i], delimiter, *rows);
    }
    // A line without a character would be passed over.
    if (cells.size() == 1 && cells.front().empty()) *rows += "\"\"";
    *rows += '\n';
  };
  append_row(keys);
  std::vector<std::string> cells(keys.size());
  each_object(path, chars, [&](std::int64_t line, const nlohmann::ordered_json& object) {
    for (std::string& cell : cells) cell.clear();
    for (const auto& [key, value] : object.items()) cells[at.at(key)] = cell_of(value);
    append_row(cells);
    table.lines.push_back(line);
  });
  text.check_intact();
  const std::span<const char> view(*rows);
  table.text = Bytes(std::move(rows), std::as_bytes(view));
  return table;
}

}  // namespace pmaptrain::data
