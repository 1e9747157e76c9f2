#include "core/spec/yaml/report.h"

#include <utility>

#include "core/base/text.h"
#include "core/base/utf8.h"

namespace pmaptrain::spec {

Node Reporter::report(const Node& at, std::string message, std::string help, std::vector<std::string> notes) const {
  out_.push_back(Diagnostic{kind_of(at), place_of(at), std::move(message), std::move(help), std::move(notes)});
  return empty_at(at, Node::Kind::invalid);
}

std::string suggest(std::string_view word, const std::vector<std::string>& candidates, std::string_view what) {
  const std::string near = nearest(word, candidates);
  if (!near.empty()) return "did you mean '" + near + "'?";
  return "valid " + std::string(what) + ": " + join(candidates, ", ");
}

std::string said_at(const Node& node) {
  const Place place = place_of(node);
  if (!node.source || !node.source->option) {
    return place.file + (place.line > 0 ? ":" + std::to_string(place.line) + ":" + std::to_string(place.column) : "");
  }
  const std::string& argument = node.source->lines.front();
  return shown_name(argument.starts_with(place.file) ? argument : place.file + " " + argument, 72);
}

}  // namespace pmaptrain::spec
