#include "core/setup/initial/file.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/data/arrays/array.h"
#include "core/data/file.h"
#include "core/setup/initial/word_vectors.h"
#include "core/spec/load.h"

namespace pmaptrain::setup {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view whole_name = "model.safetensors", index_name = "model.safetensors.index.json";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_run(const fs::path& folder) { return is_there(folder / "checkpoints"); }

// What may be meant by a folder that is neither a run's nor one with tensors.
std::string why_none(const std::string& path) {
  if (is_there(fs::path(path) / "config.yaml")) return "";
  std::error_code ignored;
  std::string pickled;
  for (fs::directory_iterator at(path, ignored), end; !ignored && at != end; at.increment(ignored)) {
    if (at->path().extension() == ".safetensors") return "it has a file to take: " + at->path().string();
    if (at->path().extension() == ".bin" || at->path().extension() == ".pth") pickled = at->path().string();
  }
  if (!pickled.empty()) {
    return fmt::format(
        "in Python: transformers.AutoModel.from_pretrained(\"{}\").save_pretrained(\"{}\") writes {} as safetensors; "
        "the class of the whole model, such as AutoModelForCausalLM, also writes its head",
        path, path, pickled);
  }
  return "model.init.from takes a folder that pmaptrain run wrote, such as runs/NAME, or a safetensors file";
}

// The files of a folder of transformers: model.safetensors, or the shards that its index lists. Throws Error (data).
std::vector<std::string> files_in(const fs::path& folder) {
  const fs::path index = folder / index_name;
  if (is_there(folder / whole_name)) return {(folder / whole_name).string()};  // as transformers prefers it
  const data::Bytes file = data::map_file(index.string());
  const auto* const text = reinterpret_cast<const char*>(file.view().data());
  constexpr int most_levels = 16;
  nlohmann::ordered_json json;
  if (!is_nested_deeper({text, file.size()}, most_levels)) json = try_parse_json({text, file.size()});
  const auto refuse = [&](const std::string& what) {
    fail_data(fmt::format("'{}' {}", index.string(), what), "it lists the files of a model: {\"weight_map\": {...}}");
  };
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) {
    refuse("is no index of safetensors files");
  }
  std::set<std::string> names;
  for (const auto& [tensor, name] : json["weight_map"].items()) {
    const std::string shard = name.is_string() ? name.get<std::string>() : "";
    const bool is_below = shard.find('/') != std::string::npos || shard.find('\0') != std::string::npos;
    if (!shard.ends_with(".safetensors") || is_below) {
      refuse(fmt::format("names no file of its folder for '{}'", tensor));
    }
    names.insert(shard);
  }
  if (names.empty()) refuse("lists no file");
  std::vector<std::string> paths;
  paths.reserve(names.size());
  for (const std::string& name : names) paths.push_back((folder / name).string());
  return paths;
}

std::optional<InitialRun> run_of(const std::string& path, const data::Encoding& encoding) {
  try {
    InitialRun run{encoding.classes, {}};
    if (const auto given = spec::load(path, {}).spec.data.normalize) {
      if (given->automatic && !encoding.statistics) return std::nullopt;
      run.normalize = given->automatic ? *encoding.statistics : FieldStatistics{given->mean, given->std};
    }
    return run;
  } catch (const Error&) {  // of a config that another version wrote, or that was edited: its parameters may be used
    return std::nullopt;
  }
}

// The tensors of several files.
InitialFile open_shards(const std::string& path, const run::FirstProcess& first) {
  InitialFile opened;
  const std::string list = first.text([&] { return json_text(nlohmann::ordered_json(files_in(path))); });
  std::map<std::string, std::string> files;  // by tensors
  for (const std::string& name : parse_json(list).get<std::vector<std::string>>()) {
    data::Bytes file = first.bytes([&] { return data::map_file(name); });
    for (run::TensorView& tensor : run::view_safetensors_with_halves(file, name)) {
      const auto [other, is_new] = files.emplace(tensor.name, name);
      if (!is_new) {
        fail_data(fmt::format("'{}' and '{}' both have '{}'", other->second, name, tensor.name),
                  "leave out one of them");
      }
      opened.file.tensors.push_back(std::move(tensor));
    }
    if (opened.file.path.empty()) {
      opened.file.path = name;
      opened.file.file = std::move(file);
    } else {
      opened.file.path = path;  // of all
      opened.shards.push_back(std::move(file));
    }
  }
  return opened;
}

InitialFile open_file(const spec::InitialFrom& from, const run::FirstProcess& first) {
  const std::string kind = first.text([&] {
    std::error_code ignored;
    if (!fs::is_directory(from.path, ignored)) return std::string("file");
    const bool has_tensors = is_there(fs::path(from.path) / whole_name) || is_there(fs::path(from.path) / index_name);
    return std::string(has_tensors && !is_run(from.path) ? "tensors" : "run");
  });
  if (kind == "tensors") return open_shards(first.text([&] { return from.path; }), first);
  InitialFile opened;
  if (kind == "file") {
    opened.file.path = first.text([&] { return from.path; });
    opened.file.file = first.bytes([&] { return data::map_file(from.path); });
    opened.is_text = has_word_vectors(opened.file.file);
    if (opened.is_text) return opened;
    opened.file.tensors = run::view_safetensors_with_halves(opened.file.file, opened.file.path);
    return opened;
  }
  const std::string why = first.text([&] { return is_run(from.path) ? std::string() : why_none(from.path); });
  if (!why.empty()) {
    fail_usage(fmt::format("'{}' is a folder, and no run folder", from.path), why);
  }
  if (from.layout != model::ParameterLayout::flax) {
    fail_usage(fmt::format("'{}' is a run, whose parameters do not have the layout {}", from.path,
                           declare::word_of(from.layout)),
               "leave out model.init.from.layout, which is for files");
  }
  run::CheckpointWeights trained = run::load_weights(from.path, from.checkpoint, from.weights, first);
  if (!trained.state.base.empty()) {
    fail_usage(fmt::format("'{}' was trained with adapters (lora), and its checkpoints have these alone", from.path),
               "`pmaptrain export RUN --output FILE.safetensors` writes the whole model, for model.init.from");
  }
  opened.file = std::move(trained.parameters);
  opened.state = std::move(trained.state);
  if (first.is_this()) opened.run = run_of(from.path, opened.state->encoding);
  return opened;
}

}  // namespace

InitialFile open_initial_file(const spec::ModelSpec& spec, const run::FirstProcess& first) {
  try {
    return open_file(*spec.initial_from, first);
  } catch (const FailedElsewhere&) {
    throw;
  } catch (const Error& error) {
    data::throw_at(spec.init_place, error);
  }
}

}  // namespace pmaptrain::setup
