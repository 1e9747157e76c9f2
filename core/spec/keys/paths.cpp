#include "core/spec/keys/paths.h"

#include "core/base/text.h"
#include "core/spec/types/path.h"
#include "core/spec/types/takes.h"

namespace pmaptrain::spec {

bool is_path(std::string_view path) {
  for (std::size_t dot = path.rfind('.'); dot != std::string_view::npos && is_index(path.substr(dot + 1));
       dot = path.rfind('.')) {
    path = path.substr(0, dot);
  }
  const Key* const known = find_key(path);
  return known != nullptr && (takes_path(*known) || known->type == Takes<declare::FilePair>::type);
}

std::vector<PathAt> paths_in(const std::string& key, const Node& node) {
  std::vector<PathAt> paths;
  each_path(key, node, [&](const std::string& at, const Node& path) {
    paths.push_back({at, path.text, place_of(path)});
  });
  return paths;
}

}  // namespace pmaptrain::spec
