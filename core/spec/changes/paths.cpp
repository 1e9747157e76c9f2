#include "core/spec/paths.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <system_error>
#include <utility>

#include "core/base/text.h"
#include "core/spec/changes/overlap.h"
#include "core/spec/keys/paths.h"
#include "core/spec/yaml/find.h"
#include "core/spec/yaml/node.h"

namespace pmaptrain::spec {
namespace {

namespace fs = std::filesystem;

using Kind = Node::Kind;

Node* node_at(Node& root, std::initializer_list<std::string_view> names) {
  Node* at = &root;
  for (const std::string_view name : names) {
    at = at != nullptr && at->is(Kind::map) ? at->find(name) : nullptr;
  }
  return at;
}

// Below `root`, what is left of the path after some of its first folders; none if nothing of it is there.
std::optional<fs::path> found_below(const fs::path& root, const fs::path& path) {
  for (auto first = ++path.begin(); first != path.end(); ++first) {  // the first is "/"
    fs::path at = root;
    for (auto name = first; name != path.end(); ++name) at /= *name;
    std::error_code ignored;
    if (fs::exists(at, ignored)) return at;
  }
  return std::nullopt;
}

// The folder that --data-root names.
fs::path folder_of(const std::string& data_root) {
  std::error_code error;
  fs::path root = fs::absolute(data_root, error).lexically_normal();
  if (!root.has_filename() && root.has_relative_path()) root = root.parent_path();  // "data/"
  if (fs::is_directory(root, error)) return root;
  fail_usage("--data-root: '" + data_root + "' is no folder",
             "it is a folder below which the files of data.source lie");
}

std::optional<fs::path> found_beside(const std::string& directory, const fs::path& path) {
  std::error_code error;
  for (fs::path at = fs::absolute(directory, error).lexically_normal();; at = at.parent_path()) {
    if (std::optional<fs::path> found = found_below(at, path)) return found;
    if (at == at.root_path() || at.empty()) return std::nullopt;
  }
}

}  // namespace

std::vector<PathAt> paths_below(const Loaded& loaded, std::string_view key) {
  const Node* const node = get_path(loaded.tree.get(), key);
  return node != nullptr ? paths_in(std::string(key), *node) : std::vector<PathAt>();
}

void find_data(Node& config, const Overrides& overrides, const std::string& directory,
               std::vector<std::string>& facts) {
  Node* const source = node_at(config, {"data", "source"});
  if (source == nullptr || (!overrides.data_root && !overrides.is_run)) return;
  const std::optional<fs::path> root =
      overrides.data_root ? std::optional(folder_of(*overrides.data_root)) : std::nullopt;
  bool has_paths = false;
  each_path("data.source", *source, [&](const std::string& key, Node& node) {
    has_paths = true;
    if (node.source && node.source->option) return;
    const fs::path path = node.text;
    std::error_code ignored;
    std::optional<fs::path> found;
    if (root) {
      found = found_below(*root, path);
      if (!found && !fs::exists(path, ignored)) {
        facts.push_back(key + ": below '" + root->string() + "' (--data-root) there is neither '" +
                        path.relative_path().string() + "' nor the end of this path; --set " + key +
                        "=PATH names it where it is called otherwise");
        found = *root / path.filename();
      }
    } else if (!fs::exists(path, ignored)) {
      found = found_beside(directory, path);
    }
    if (!found || *found == path) return;
    facts.push_back(key + " is '" + found->string() + "'" +
                    (root ? ", by --data-root" : "; there is no '" + node.text + "' any more"));
    node.text = found->string();
  });
  if (root && !has_paths) {
    fail_usage("--data-root was given, and data.source names no files",
               "leave it out; fashion_mnist is found elsewhere by data.source.fashion_mnist.dir");
  }
}

void find_base(Node& config, const Overrides& overrides, const std::string& directory,
               std::vector<std::string>& facts) {
  if (node_at(config, {"lora"}) == nullptr) {
    if (overrides.base) {
      fail_usage("--base was given, and the config has no lora",
                 "leave it out: without adapters a checkpoint has all parameters");
    }
    return;
  }
  Node* const path = node_at(config, {"model", "init", "from", "path"});
  if (path == nullptr || !path->valid()) {
    if (overrides.base) {
      fail_usage("--base was given, and the base of this config is drawn from its seed",
                 "leave it out; model.init.from takes the base from a file or a run");
    }
    return;
  }
  std::error_code error;
  if (overrides.base) {
    path->text = fs::absolute(*overrides.base, error).lexically_normal().string();
    return;
  }
  if (!overrides.is_run || fs::exists(path->text, error)) return;
  const std::optional<fs::path> found = found_beside(directory, path->text);
  if (!found) return;
  facts.push_back("model.init.from.path is '" + found->string() + "'; there is no '" + path->text + "' any more");
  path->text = found->string();
}

}  // namespace pmaptrain::spec
