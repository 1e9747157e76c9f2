#include "core/setup/initial/file.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/data/arrays/array.h"
#include "core/data/file.h"
#include "core/setup/initial/word_vectors.h"
#include "core/spec/load.h"

namespace pmaptrain::setup {
namespace {

// What may be meant by a folder that is no run's; empty for the folder of a run.
std::string why_no_run(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::exists(fs::path(path) / "checkpoints", ignored) || fs::exists(fs::path(path) / "config.yaml", ignored))
    return "";
  for (fs::directory_iterator at(path, ignored), end; !ignored && at != end; at.increment(ignored)) {
    if (at->path().extension() == ".safetensors") return "it has a file to take: " + at->path().string();
  }
  return "model.init.from takes a folder that pmaptrain run wrote, such as runs/NAME, or a safetensors file";
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

InitialFile open_file(const spec::InitialFrom& from, const run::FirstProcess& first) {
  const std::string kind = first.text([&] {
    std::error_code ignored;
    return std::string(std::filesystem::is_directory(from.path, ignored) ? "run" : "file");
  });
  InitialFile opened;
  if (kind == "file") {
    opened.file.path = first.text([&] { return from.path; });
    opened.file.file = first.bytes([&] { return data::map_file(from.path); });
    opened.is_text = has_word_vectors(opened.file.file);
    if (opened.is_text) return opened;
    opened.file.tensors = run::view_safetensors(opened.file.file, opened.file.path, opened.widened);
    return opened;
  }
  if (const std::string why = first.text([&] { return why_no_run(from.path); }); !why.empty()) {
    fail_usage(fmt::format("'{}' is a folder, and no run folder", from.path), why);
  }
  if (from.layout == model::ParameterLayout::torch) {
    fail_usage(fmt::format("'{}' is a run, whose parameters do not have the layout torch", from.path),
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
