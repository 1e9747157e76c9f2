#include "app/pretrained_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/data/file.h"

namespace pmaptrain::app {

using Json = nlohmann::ordered_json;

JsonFile::JsonFile(std::string path) : path_(std::move(path)) {
  const data::Bytes file = data::map_file(path_);
  const auto* const text = reinterpret_cast<const char*>(file.view().data());
  const std::string_view content(text, file.size());
  constexpr int most_levels = 16;
  Json json;
  if (!is_nested_deeper(content, most_levels)) json = try_parse_json(content);
  if (!json.is_object()) {
    fail_data("'" + path_ + "' is no JSON object", "save_pretrained() of transformers writes the folder of a model");
  }
  json_ = std::make_shared<const Json>(std::move(json));
}

namespace {

// Products of two of them are no overflow.
bool is_integer(const Json& value, std::int64_t least) {
  constexpr double most = 2147483647;
  return value.is_number_integer() && value.get<double>() >= static_cast<double>(least) && value.get<double>() <= most;
}

}  // namespace

const Json* JsonFile::find(std::string_view key) const {
  const Json* at = json_.get();
  while (true) {
    const std::size_t dot = key.find('.');
    if (!at->is_object()) return nullptr;
    const auto found = at->find(std::string(key.substr(0, dot)));
    if (found == at->end() || found->is_null()) return nullptr;
    if (dot == std::string_view::npos) return &*found;
    at = &*found;
    key.remove_prefix(dot + 1);
  }
}

const Json& JsonFile::at(std::string_view key) const {
  const Json* const found = find(key);
  if (found == nullptr) {
    fail_data(fmt::format("'{}' has no '{}'", path_, key), "save_pretrained() of transformers writes a complete one");
  }
  return *found;
}

void JsonFile::fail(std::string_view key, std::string_view expected) const {
  fail_data(fmt::format("'{}' has {} for '{}'", path_, json_text(at(key)), key), fmt::format("expected {}", expected));
}

void JsonFile::refuse(std::string_view key, const std::string& help) const {
  if (!has(key)) fail_data(fmt::format("'{}' has no '{}', and the default does not fit", path_, key), help);
  fail_data(fmt::format("'{}' has {} for '{}', for which there is no layer here", path_, json_text(at(key)), key),
            help);
}

bool JsonFile::has(std::string_view key) const { return find(key) != nullptr; }

std::int64_t JsonFile::integer(std::string_view key) const {
  if (!is_integer(at(key), 1)) fail(key, "a whole number of at least 1");
  return at(key).get<std::int64_t>();
}

std::vector<std::int64_t> JsonFile::integers(std::string_view key, std::int64_t least) const {
  const Json& value = at(key);
  std::vector<std::int64_t> all;
  for (const Json& one : value.is_array() ? value : Json::array({value})) {
    if (!is_integer(one, least)) fail(key, fmt::format("a whole number of at least {}, or a list of them", least));
    all.push_back(one.get<std::int64_t>());
  }
  return all;
}

std::int64_t JsonFile::integer(std::string_view key, std::int64_t otherwise) const {
  return has(key) ? integer(key) : otherwise;
}

double JsonFile::number(std::string_view key) const {
  const Json& value = at(key);
  if (!value.is_number()) fail(key, "a number");
  return value.get<double>();
}

double JsonFile::number(std::string_view key, double otherwise) const { return has(key) ? number(key) : otherwise; }

bool JsonFile::flag(std::string_view key, bool otherwise) const {
  if (!has(key)) return otherwise;
  if (!at(key).is_boolean()) fail(key, "true or false");
  return at(key).get<bool>();
}

std::string JsonFile::text(std::string_view key, std::string_view otherwise) const {
  if (!has(key)) return std::string(otherwise);
  if (!at(key).is_string()) fail(key, "a text");
  return at(key).get<std::string>();
}

std::vector<double> JsonFile::numbers(std::string_view key) const {
  const Json& value = at(key);
  if (!value.is_array()) fail(key, "a list of numbers");
  std::vector<double> all;
  for (const Json& one : value) {
    if (!one.is_number()) fail(key, "a list of numbers");
    all.push_back(one.get<double>());
  }
  return all;
}

std::string JsonFile::first_text(std::string_view key) const {
  const Json* const found = find(key);
  const bool has_text = found != nullptr && found->is_array() && !found->empty() && found->front().is_string();
  return has_text ? found->front().get<std::string>() : "";
}

std::int64_t JsonFile::entries(std::string_view key) const {
  const Json* const found = find(key);
  return found == nullptr ? 0 : static_cast<std::int64_t>(found->size());
}

}  // namespace pmaptrain::app
