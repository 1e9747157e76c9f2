// Two configs of one run, key by key.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/spec/changes/loaded.h"

namespace pmaptrain::spec {

struct ChangedKey {
  std::string path;           // dotted; items of lists by index
  std::string before, after;  // as YAML; empty where the config has no such key
  std::string kind;           // of an error about it: "config", or "usage" if an option set it
  Place place;                // of the new value, or of the map above it
  bool is_default = false;    // whether the new value is a default
  bool is_tensor_axis = false;
};

// The keys in which `loaded` differs from the resolved config `before`, in order. The axes of the mesh are one key,
// such as "replicas=2 shards=4", but for those of the ensemble and of parallelism.tensor, "mesh.axes.NAME".
// Sections whose names begin with "x-" are no keys.
// Throws Error (usage), which names `file`, if `before` is no YAML.
std::vector<ChangedKey> changed_keys(const std::string& before, const std::string& file, const Loaded& loaded);

// The keys in which two resolved configs differ, without places.
std::vector<ChangedKey> changed_keys(const std::string& before, const std::string& after);

// Whether `path` is that of `key` or of a key below it.
bool is_at_or_below(std::string_view path, std::string_view key);

// Whether the config that continues a run may have another value of this key: it does not change what the run computes,
// or only for how long.
bool may_differ_on_resume(std::string_view path);

}  // namespace pmaptrain::spec
