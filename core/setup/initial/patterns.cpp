#include "core/setup/initial/patterns.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "core/base/text.h"

namespace pmaptrain::setup {
namespace {

// Quoted patterns that match these names and none of the others: of a layer, or a list of layers, where all of it is
// among them, one pattern.
std::vector<std::string> patterns_of(const std::vector<std::string>& names, const std::vector<std::string>& others) {
  std::vector<std::string> patterns;
  for (const std::string& name : names) {
    std::string pattern = name;
    for (std::size_t dot = name.find('.'); names.size() > 1 && dot != std::string::npos;
         dot = name.find('.', dot + 1)) {
      const std::string_view list = std::string_view(name).substr(0, dot + 1);
      if (std::any_of(others.begin(), others.end(), [&](const auto& other) { return other.starts_with(list); })) {
        continue;
      }
      pattern = std::string(list) + "*";
      break;
    }
    pattern.insert(0, 1, '"').push_back('"');
    if (std::find(patterns.begin(), patterns.end(), pattern) == patterns.end()) patterns.push_back(pattern);
  }
  return patterns;
}

}  // namespace

std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 8;
  if (names.size() <= most) return join(names, ", ");
  return join({names.begin(), names.begin() + most}, ", ") + " and " + std::to_string(names.size() - most) + " more";
}

std::string keys_that_take(const std::vector<std::string>& fitting, const std::vector<std::string>& unfit,
                           const spec::InitialFrom& from, const model::Model& model) {
  std::vector<std::string> others = unfit;
  for (const model::Parameter& parameter : model.parameters) {
    if (std::find(fitting.begin(), fitting.end(), parameter.name) == fitting.end()) others.push_back(parameter.name);
  }
  const std::string include = "include: [" + join(patterns_of(fitting, others), ", ") + "]";
  others.clear();
  for (const model::Parameter& parameter : model.parameters) {
    if (std::find(unfit.begin(), unfit.end(), parameter.name) == unfit.end()) others.push_back(parameter.name);
  }
  std::vector<std::string> left_out;
  for (const declare::Pattern& pattern : from.exclude) left_out.push_back('"' + pattern.text + '"');
  for (const std::string& pattern : patterns_of(unfit, others)) {
    if (std::find(left_out.begin(), left_out.end(), pattern) == left_out.end()) left_out.push_back(pattern);
  }
  const std::string exclude = "exclude: [" + join(left_out, ", ") + "]";
  const bool takes = include.size() <= exclude.size();
  return (takes               ? "take what fits: "
          : unfit.size() == 1 ? "leave it out: "
                              : "leave them out: ") +
         ("init: {from: {path: ..., " + (takes ? include : exclude) + "}}");
}

std::string renaming(const std::map<std::string, Shape>& missing, const std::map<std::string, Shape>& others) {
  for (const auto& [first, its_shape] : missing) {
    // Tries the lists that contain the parameter, beginning with the outermost one.
    for (std::size_t dot = first.find('.'); dot != std::string::npos; dot = first.find('.', dot + 1)) {
      const std::string to = first.substr(0, dot), rest = first.substr(dot);
      for (const auto& [tensor, shape] : others) {
        if (!tensor.ends_with(rest) || tensor.size() == rest.size()) continue;
        const std::string from = tensor.substr(0, tensor.size() - rest.size());
        const auto fits = [&](const auto& parameter) {
          if (!parameter.first.starts_with(to + ".")) return true;
          const auto found = others.find(from + parameter.first.substr(to.size()));
          return found != others.end() && found->second == parameter.second;
        };
        if (std::all_of(missing.begin(), missing.end(), fits)) {
          return std::string("\"").append(from).append(".*\": \"").append(to).append(".*\"");
        }
      }
    }
  }
  return "";
}

}  // namespace pmaptrain::setup
