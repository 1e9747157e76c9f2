#include "core/spec/types/key.h"

namespace pmaptrain::spec {

std::string path_below(std::string_view path, std::string_view name) {
  const bool both = !path.empty() && !name.empty();
  return std::string(path) + (both ? "." : "") + std::string(name);
}

}  // namespace pmaptrain::spec
