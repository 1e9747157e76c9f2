// The paths of files and folders in a checked config.
#pragma once

#include <string>
#include <vector>

#include "core/spec/data.h"
#include "core/spec/keys.h"
#include "core/spec/yaml/find.h"
#include "core/spec/yaml/node.h"

namespace pmaptrain::spec {

// Visits each path at or below a node, which is at the dotted path `key`.
template <class AnyNode, class Visit>
void each_path(const std::string& key, AnyNode& node, const Visit& visit) {
  // A checked path is absolute.
  if (node.is(Node::Kind::scalar) && node.text.starts_with('/') && is_path(key)) visit(key, node);
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const std::string name = node.is(Node::Kind::map) ? node.keys[i].text : std::to_string(i);
    each_path(path_below(key, name), node.items[i], visit);
  }
}

// All of them, in order.
std::vector<PathAt> paths_in(const std::string& key, const Node& node);

}  // namespace pmaptrain::spec
