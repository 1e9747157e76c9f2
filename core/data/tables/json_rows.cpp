#include "core/data/tables/json_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
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

// Calls `take(line number, object)` for each line that is not blank, and `leave(line number, error)` for one that is no
// object, or for which `take` throws an Error (data).
template <class Take, class Leave>
void each_object(const std::string& path, std::string_view text, Take&& take, Leave&& leave) {
  std::int64_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    try {
      take(number, object_of(line, fmt::format("'{}', line {}: ", path, number)));
    } catch (const Error& error) {
      if (error.status() != ExitStatus::data) throw;
      leave(number, error);
    }
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

TableText rows_of_json(const std::string& path, const Bytes& text, char delimiter, const std::string& text_key,
                       OnError on_error) {
  constexpr std::size_t most_keys = 4096;
  const std::string_view chars = as_chars(text.view());
  std::vector<std::string> keys;
  std::map<std::string, std::size_t> at;
  std::size_t bytes = 0, rows = 1;  // at most
  TableText table{path, {}, {0}};
  bool has_too_many = false;  // keys, which is no matter of a line
  const auto learn = [&](std::int64_t line, const Json& object) {
    ++rows;
    const auto own = object.find(text_key);
    if (own != object.end() && own->is_structured()) {
      fail_data(fmt::format("'{}', line {}: '{}' is {}, expected a text", path, line, shown_name(text_key),
                            own->is_array() ? "a list" : "an object"),
                "join its parts to one text");
    }
    for (const auto& [key, value] : object.items()) {
      bytes += 2 * cell_of(value).size() + 2;
      if (!at.emplace(key, keys.size()).second) continue;
      keys.push_back(key);
      bytes += 2 * key.size() + 2;
      has_too_many = keys.size() > most_keys;
      if (!has_too_many) continue;
      fail_data(
          fmt::format("'{}', line {}: the objects have more than {} keys by now", path, line, with_commas(most_keys)),
          "each key is a column of the table: the same ones in each line");
    }
  };
  std::optional<Error> first;
  each_object(path, chars, learn, [&](std::int64_t line, const Error& error) {
    if (on_error == OnError::error || has_too_many) throw Error(error);
    if (!first) first = error;
    ++rows;  // perhaps once more
    table.faults.emplace(line, error.diagnostics().front().message);
  });
  if (first && keys.empty()) throw Error(*first);
  bytes += rows * (keys.size() + 1);
  demand_memory(bytes, fmt::format("'{}' as a table", path));
  auto table_text = std::make_shared<std::string>();
  table_text->reserve(bytes);
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
  const auto clear = [&] {
    for (std::string& cell : cells) cell.clear();
  };
  const auto append = [&](std::int64_t line) {
    append_row(cells);
    table.lines.push_back(line);
  };
  const auto write = [&](std::int64_t line, const Json& object) {
    clear();
    if (!table.faults.contains(line)) {
      for (const auto& [key, value] : object.items()) cells[at.at(key)] = cell_of(value);
    }
    append(line);
  };
  each_object(path, chars, write, [&](std::int64_t line, const Error&) {
    clear();
    append(line);
  });
  text.check_intact();
  const std::span<const char> view(*table_text);
  table.text = Bytes(std::move(table_text), std::as_bytes(view));
  return table;
}

}  // namespace pmaptrain::data
