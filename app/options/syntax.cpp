#include "app/options/syntax.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"

namespace pmaptrain::app {
namespace {

using Kind = Values::Kind;

bool is_word(std::string_view part) {
  return !part.empty() && part.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string_view::npos;
}

std::vector<std::string> words_in(std::string_view name) {
  std::vector<std::string> words;
  while (!name.empty()) {
    const std::size_t bar = std::min(name.find('|'), name.size());
    if (is_word(name.substr(0, bar))) words.emplace_back(name.substr(0, bar));
    name.remove_prefix(std::min(bar + 1, name.size()));
  }
  return words;
}

}  // namespace

Values values_of(std::string_view name) {
  if (name.empty()) return {};
  if (std::vector<std::string> words = words_in(name); !words.empty()) return {Kind::words, std::move(words)};
  name = name.substr(0, name.find('|'));
  if (name == "KEY=VALUE") return {Kind::settings};
  const bool is_named = name.starts_with("NAME=");
  if (is_named) name.remove_prefix(name.find('=') + 1);
  const std::string_view stem = name.substr(0, name.find('.'));
  std::vector<std::string> endings;
  if (stem.size() < name.size()) endings.emplace_back(name.substr(stem.size() + 1));
  if (stem == "CONFIG" || stem == "SWEEP") endings = {"yaml", "yml"};
  if (stem == "DIR" || stem == "RUN") return {Kind::folders};
  if (stem == "FILE" || stem == "PATH" || !endings.empty()) {
    return {is_named ? Kind::named_files : Kind::files, std::move(endings)};
  }
  return {Kind::any};
}

std::string OptionSyntax::shown() const {
  const std::string all = join(names, ", ");
  return value.empty() ? all : fmt::format("{} {}", all, value);
}

std::string CommandSyntax::arguments() const {
  std::vector<std::string> all;
  for (const PositionalSyntax& positional : positionals) {
    const std::string name = positional.name + (positional.repeats ? "..." : "");
    all.push_back(positional.required ? name : fmt::format("[{}]", name));
  }
  return join(all, " ");
}

std::string CommandSyntax::usage() const {
  const std::string taken = arguments();
  return fmt::format("pmaptrain {}{}{} [OPTION]...", command, taken.empty() ? "" : " ", taken);
}

}  // namespace pmaptrain::app
