// Two configs of one run, key by key.
#pragma once

#include <string>
#include <vector>

#include "core/spec/load.h"

namespace pmaptrain::spec {

struct ChangedKey {
  std::string path;           // dotted; items of lists by index
  std::string before, after;  // as YAML; empty where the config has no such key
  std::string kind;           // of an error about it: "config", or "usage" if an option set it
  Place place;                // of the new value, or of the map above it
  bool is_default = false;    // whether the new value is a default
};

// The keys in which `loaded` differs from the resolved config `before`, in order. The axes of the mesh are one key,
// such as "replicas=2 shards=4", but for that of the ensemble, "mesh.axes.NAME": its place among them says nothing.
// Throws Error (usage), which names `file`, if `before` is no YAML.
std::vector<ChangedKey> changed_keys(const std::string& before, const std::string& file, const Loaded& loaded);

}  // namespace pmaptrain::spec
