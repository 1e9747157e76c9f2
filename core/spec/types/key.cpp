#include "core/spec/types/key.h"

namespace pmaptrain::spec {

std::string path_below(std::string_view path, std::string_view name) {
  const bool both = !path.empty() && !name.empty();
  return std::string(path) + (both ? "." : "") + std::string(name);
}

std::string fallback_of(const Key& key) {
  if (key.need == Need::required) return "required";
  if (!key.fallback.empty()) return "default " + std::string(key.fallback);
  if (!key.fallback_text.empty()) return "default: " + std::string(key.fallback_text);
  return key.need == Need::alternative ? "" : "optional";
}

}  // namespace pmaptrain::spec
