// Loads YAML with command-line overrides as a validated Spec, and reports all errors at once, with places.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/change.h"
#include "core/spec/spec.h"

namespace pmaptrain::spec {

struct Overrides {
  std::vector<std::string> set;  // "KEY=VALUE", in order
  std::optional<std::int64_t> devices;
  std::optional<std::int64_t> workers;
  std::optional<std::uint64_t> seed;
  std::optional<std::string> name;
  std::optional<std::string> max_time;
};

struct Node;

struct Loaded {
  Spec spec;
  std::shared_ptr<const Node> tree;  // the checked config, with the places of its values
  std::string resolved;              // the resolved config as YAML; running it repeats the run
  std::vector<Change> recorded;      // what x-changes of the file has; a new run does not repeat it
  std::vector<Change> changes;       // applied to `spec` and `tree`, in order; see apply_changes()
  std::vector<std::string> notes;    // notes for the user, such as "optimizer.sgd replaces optimizer.adam"
  Interval max_time;                 // --max-time, which is no part of the config
};

// `path` is a YAML file or a run folder (its config.yaml). Throws Error (exit status usage) with all diagnostics.
Loaded load(const std::string& path, const Overrides& overrides);

// The same from text; `file` names it in messages, and relative paths are relative to `directory`.
Loaded load_text(const std::string& text, const std::string& file, const std::string& directory,
                 const Overrides& overrides);

// What `pmaptrain help KEY` prints: a dotted key path (optimizer.adam, data.source, layers, ...); empty for the
// overview. Throws Error (usage) with the nearest spelling for an unknown key.
std::string help(const std::string& key);

// The content of docs/config.md; a test compares it with the committed file.
std::string reference_markdown();

// What `pmaptrain schema` prints: a JSON Schema (draft 2020-12) of the config. It accepts every config that load_text()
// accepts. load_text() has further checks that a schema cannot express (tests/schema/beyond.yaml).
std::string json_schema();
// The title of the schema, which identifies a file with this schema.
inline constexpr std::string_view schema_title = "A config of pmaptrain";

}  // namespace pmaptrain::spec
