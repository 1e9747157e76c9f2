// Loads YAML with command-line overrides as a validated Spec, and reports all errors at once, with places.
#pragma once

#include <string>

#include "core/spec/changes/loaded.h"
#include "core/spec/keys/help.h"
#include "core/spec/keys/schema.h"

namespace pmaptrain::spec {

// `path` is a YAML file or a run folder (its config.yaml). Throws Error (exit status usage) with all diagnostics.
Loaded load(const std::string& path, const Overrides& overrides);

// The same from text; `file` names it in messages, and relative paths are relative to `directory`.
Loaded load_text(const std::string& text, const std::string& file, const std::string& directory,
                 const Overrides& overrides);

}  // namespace pmaptrain::spec
