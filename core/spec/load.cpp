#include "core/spec/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/text.h"
#include "core/spec/bind/bind.h"
#include "core/spec/changes/assignment.h"
#include "core/spec/changes/older_format.h"
#include "core/spec/changes/override.h"
#include "core/spec/keys/check.h"
#include "core/spec/paths.h"
#include "core/spec/print.h"
#include "core/spec/yaml/parse.h"

namespace pmaptrain::spec {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_file(const std::string& file, std::string message, std::string help) {
  Diagnostic diagnostic{"usage", Place{}, std::move(message), std::move(help), {}};
  diagnostic.place.file = file;
  throw Error(ExitStatus::usage, std::move(diagnostic));
}

// Help for a missing file: the config file with the nearest name in its folder.
std::string other_files(const fs::path& missing) {
  std::vector<std::string> names;
  const fs::path folder = missing.has_parent_path() ? missing.parent_path() : fs::path(".");
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".yaml" || it->path().extension() == ".yml") {
      names.push_back(it->path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  const std::string near = nearest(missing.filename().string(), names);
  if (!near.empty()) return "did you mean " + (missing.parent_path() / near).string() + "?";
  return "CONFIG is a YAML file or a run folder; pmaptrain init writes an example config";
}

std::string read_file(const std::string& file) {
  std::error_code error;
  if (!fs::exists(file, error)) refuse_file(file, "there is no such file", other_files(file));
  if (fs::is_regular_file(file, error) && fs::file_size(file, error) > max_text_bytes) {
    refuse_file(file, "the config is larger than 4 MiB", "store data in separate files and name them in data.source");
  }
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::string text(max_text_bytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad() || (!stream.is_open())) {
    const int why = errno;
    refuse_file(file, std::string("the file cannot be read: ") + std::strerror(why),
                why == EACCES ? "check its permissions" : "");
  }
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

bool before(const Diagnostic& a, const Diagnostic& b) {
  if ((a.kind == "usage") != (b.kind == "usage")) return b.kind == "usage";
  if (a.kind == "usage") return false;  // options keep their order
  return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
}

Parsed parse_text(const ConfigText& config) {
  std::string body = config.text;
  if (body.starts_with("\xEF\xBB\xBF")) body.erase(0, 3);
  auto source = std::make_shared<Text>();
  source->file = config.file;
  source->directory = config.directory;
  if (body.size() <= max_text_bytes) source->lines = split_lines(body);
  Parsed parsed;
  parsed.file = config.file;
  parsed.tokenizer = config.tokenizer;
  Node root = parse_yaml(body, source, 0, parsed.errors);
  if (config.run_format < 2) complete_older_config(root);
  parsed.root = std::make_shared<const Node>(std::move(root));
  return parsed;
}

// A sweep file is told from a config by the keys that only it has.
void check_is_config(const Parsed& parsed) {
  const Node& root = *parsed.root;
  if (!root.is(Node::Kind::map) || root.find("model") != nullptr) return;
  if (root.find("parameters") == nullptr || root.find("base") == nullptr) return;
  refuse_file(parsed.file, "this is a sweep file, not the config of a run",
              "pmaptrain sweep run " + shell_quoted(parsed.file));
}

}  // namespace

Loaded load(const Parsed& parsed, const Overrides& overrides, std::span<const Assignment> values) {
  check_is_config(parsed);
  std::vector<Diagnostic> errors = parsed.errors;
  Loaded loaded;
  Node root = *parsed.root;
  loaded.recorded = recorded_changes(root);
  apply(overrides, values, root, errors, loaded.notes);
  const std::string stem = fs::path(parsed.file).stem().string();
  loaded.max_time = max_time_of(overrides, errors);
  Node config = check_config(root, stem.empty() ? "run" : stem, errors);
  find_data(config, overrides, parsed.root->source ? parsed.root->source->directory : "", loaded.facts);
  find_base(config, overrides, parsed.root->source ? parsed.root->source->directory : "", loaded.facts);
  loaded.spec = bind(config, errors, overrides.processes);
  if (!errors.empty()) {
    std::stable_sort(errors.begin(), errors.end(), before);
    // A key may be missing because an option replaced a choice.
    for (const std::string& note : loaded.facts_and_notes()) errors.back().notes.push_back(note);
    throw Error(ExitStatus::usage, std::move(errors));
  }
  const auto sets_tokenizer = [](const std::string& setting) { return setting.starts_with("data.tokenizer"); };
  const bool is_given = std::any_of(overrides.set.begin(), overrides.set.end(), sets_tokenizer);
  if (loaded.spec.data.tokenizer && !is_given) {
    loaded.spec.data.kept_tokenizer = parsed.tokenizer;
    if (loaded.spec.ensemble) {
      for (Spec& member : loaded.spec.ensemble->alone) member.data.kept_tokenizer = parsed.tokenizer;
    }
  }
  loaded.resolved = print_config(config);
  loaded.tree = std::make_shared<const Node>(std::move(config));
  return loaded;
}

Loaded load_text(const std::string& text, const std::string& file, const std::string& directory,
                 const Overrides& overrides) {
  return load(ConfigText{text, file, directory}, overrides);
}

Loaded load(const ConfigText& config, const Overrides& overrides) { return load(parse_text(config), overrides, {}); }

ConfigText read_config(const std::string& path) {
  std::string file = path;
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  if (fs::path(path).extension() == ".pmt") {
    refuse_file(path, "this is the text of a program, not a config",
                "pmaptrain exec " + shell_quoted(path) + " runs it");
  }
  if (is_folder) {
    file = (fs::path(path) / "config.yaml").string();
    if (!fs::exists(file, error) && fs::exists(fs::path(path) / "sweep.sqlite", error)) {
      refuse_file(path, "this is the folder of a sweep, not of a run",
                  fmt::format("each trial has a run folder: {}; pmaptrain sweep best {} says which is the best",
                              shell_quoted((fs::path(path) / "trials/NNNN").string()), shell_quoted(path)));
    }
    if (!fs::exists(file, error)) {
      refuse_file(path, "this folder has no config.yaml; it is not a run folder",
                  "name a YAML file, or a folder that pmaptrain run wrote");
    }
    if (!fs::is_regular_file(file, error)) {
      refuse_file(file, "this is no regular file", "a run folder has its config in it");
    }
  }
  const fs::path folder = fs::absolute(file, error).parent_path();
  // "runs/cnn" or "runs/cnn/config.yaml"
  const bool is_of_run =
      is_folder || (fs::path(file).filename() == "config.yaml" && fs::exists(folder / run_marker, error));
  std::string text = read_file(file);
  ConfigText config{std::move(text), std::move(file), folder.string(), is_of_run ? format_of_run(folder) : run_format};
  const fs::path tokenizer = folder / kept_tokenizer;
  if (is_of_run && fs::is_regular_file(tokenizer, error)) config.tokenizer = tokenizer.string();
  return config;
}

Parsed parse(const std::string& path) { return parse_text(read_config(path)); }

Loaded load(const std::string& path, const Overrides& overrides) {
  Overrides own = overrides;
  std::error_code ignored;
  own.is_run = fs::is_directory(path, ignored);
  return load(parse(path), own, {});
}

}  // namespace pmaptrain::spec
