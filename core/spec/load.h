// Loads YAML with command-line overrides as a validated Spec, and reports all errors at once, with places.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/spec/changes/loaded.h"
#include "core/spec/keys/help.h"
#include "core/spec/keys/schema.h"
#include "core/spec/run_format.h"

namespace pmaptrain::spec {

// `path` is a YAML file or a run folder (its config.yaml). Throws Error (exit status usage) with all diagnostics.
Loaded load(const std::string& path, const Overrides& overrides);

// The text of a config file, which is not parsed yet.
struct ConfigText {
  std::string text, file, directory;
  int run_format = spec::run_format;  // of the run folder that has it as its config.yaml
  std::string tokenizer = {};         // of that run folder, the copy that it keeps; empty without one
};
Loaded load(const ConfigText& config, const Overrides& overrides);
// Throws Error (usage) if there is no such file, or it cannot be a config.
ConfigText read_config(const std::string& path);

// The same from text; `file` names it in messages, and relative paths are relative to `directory`.
Loaded load_text(const std::string& text, const std::string& file, const std::string& directory,
                 const Overrides& overrides);

// The tree of a config file before its checks. A sweep parses its base once, and checks it with the values of each
// trial.
struct Parsed {
  std::shared_ptr<const Node> root;
  std::string file;
  std::vector<Diagnostic> errors;  // of the parser; load() reports them with its own
  std::string tokenizer = {};      // ConfigText::tokenizer
};

struct Assignment;

Parsed parse(const std::string& path);
// The config with `values` in place of its own, after the overrides; later ones win. Throws like load().
Loaded load(const Parsed& parsed, const Overrides& overrides, std::span<const Assignment> values);

}  // namespace pmaptrain::spec
