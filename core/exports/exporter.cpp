#include "core/exports/exporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/data/tables/csv_source.h"
#include "core/exports/arrays.h"
#include "core/exports/merged.h"
#include "core/model/layout.h"
#include "core/model/other_names.h"
#include "core/onnx/file.h"
#include "core/setup/options.h"

namespace pmaptrain::exports {
namespace {

using Json = nlohmann::ordered_json;

void check_request(const spec::Loaded& loaded, const ExportRequest& request) {
  if (request.format != ExportFormat::safetensors || !loaded.spec.ensemble || request.member) return;
  const std::int64_t members = spec::members(loaded.spec);
  fail_usage(fmt::format("--format safetensors takes one member of an ensemble: the parameters of its {} have no mean "
                         "that predicts",
                         counted(members, "member")),
             fmt::format("choose one, --member 0{}, or --format onnx, which has the mean of their predictions",
                         members > 1 ? fmt::format(" to --member {}", members - 1) : ""));
}

bool ignores_unknown(const data::SourceKind& source) {
  const auto* const csv = source.as<data::Csv>();
  return csv != nullptr && csv->unknown == data::Unknown::ignore;
}

// How the columns of a table become the inputs of the first layer, in their order.
Json columns_of(const data::Encoding& encoding) {
  Json columns = Json::array();
  for (const data::Encoding::Column& column : encoding.columns) {
    Json& one = columns.emplace_back(Json{{"name", column.name}});
    if (!column.categories.empty()) one["categories"] = column.categories;
    if (column.numbered) one["numbered"] = true;
    if (column.missing) one["missing"] = *column.missing;
  }
  return columns;
}

// The arrays that a layout has for several parameters. Of two that are added, the second is zeros where no parameter is
// stored there itself.
run::Tensors arrays_of_several(const TrainedModel& trained, model::ParameterLayout layout) {
  run::Tensors arrays;
  for (std::size_t i = 0; i < trained.parameters.size(); ++i) {
    const model::StoredParameter stored = model::stored(trained.model.parameters[i], layout);
    if (!stored.is_part()) continue;
    write_to_array(arrays, stored, trained.parameters[i], trained.model.parameters[i].name);
    if (stored.added.empty() || arrays.contains(stored.added)) continue;
    run::Tensor& added = arrays[stored.added];
    added.shape = stored.array_shape();
    added.bytes.resize(static_cast<std::size_t>(numel(added.shape)) * sizeof(float));
  }
  return arrays;
}

// Whether the model is of the kind of the layout: it has names for all parameters, and the model those that stand once.
void check_names(const model::Model& model, model::ParameterLayout layout) {
  if (!model::has_other_names(layout)) return;
  std::vector<std::string> others;
  for (const model::Parameter& parameter : model.parameters) {
    if (model::find_other_name(layout, parameter.name) == nullptr) others.push_back("'" + parameter.name + "'");
  }
  for (const model::OtherName& name : model::other_names(layout).names) {
    if (!others.empty() || name.ours.find('*') != std::string_view::npos || name.ours.starts_with("head.")) continue;
    const bool has_it = std::any_of(model.parameters.begin(), model.parameters.end(),
                                    [&](const model::Parameter& parameter) { return parameter.name == name.ours; });
    if (has_it) continue;
    fail_usage(fmt::format("the layout {} is that of models with '{}', which this one lacks", declare::word_of(layout),
                           name.ours),
               "--layout torch takes any model");
  }
  if (others.empty()) return;
  constexpr std::size_t most = 4;
  const bool all = others.size() == model.parameters.size();
  if (others.size() > most) others.erase(others.begin() + most, others.end());
  fail_usage(fmt::format("the layout {} has no name for {}{}", declare::word_of(layout), join(others, ", "),
                         others.size() == most ? " and others" : ""),
             all ? "it is that of models whose config pmaptrain init wrote; --layout torch takes any model"
                 : "it has those of the layers that pmaptrain init writes; --layout torch takes any model");
}

}  // namespace

Exporter::Exporter(const spec::Loaded& loaded, const std::filesystem::path& run_dir, const ExportRequest& request)
    : request_(request), ignores_unknown_(ignores_unknown(loaded.spec.data.source)) {
  check_request(loaded, request);
  found_ = evaluate::load_members(loaded, run_dir, request.checkpoint, request.weights, request.member);
  for (const std::int64_t member : found_.members) {
    models_.push_back(trained_model(spec::member_spec(loaded.spec, member), member));
  }
  if (request.format == ExportFormat::onnx)
    make_graph(loaded);
  else
    check_names(models_.front().model, request.layout);
}

TrainedModel Exporter::trained_model(spec::Spec spec, std::int64_t member) const {
  const run::RunState& state = found_.trained.state;
  spec.precision = spec::PrecisionPolicy::float32;
  std::map<std::string, run::TensorView> tensors;
  for (run::TensorView& tensor : found_.trained.parameters.of_member(member)) tensors.emplace(tensor.name, tensor);
  if (spec.lora) return merged_model(spec, state, tensors, source());
  TrainedModel trained{setup::undivided_model_of(spec, state.input, state.target, state.encoding), {}};
  for (const model::Parameter& parameter : trained.model.parameters) {
    trained.parameters.push_back(tensor_of(tensors, parameter, source()));
  }
  return trained;
}

void Exporter::make_graph(const spec::Loaded& loaded) {
  const run::RunState& state = found_.trained.state;
  graph_ = std::make_unique<onnx::Graph>();
  append_models(*graph_, models_, state.encoding, ignores_unknown_);
  graph_->metadata("run", loaded.spec.name);
  graph_->metadata("checkpoint", found_.checkpoint);
  graph_->metadata("loss", loaded.spec.loss->name());
  if (!state.encoding.classes.empty()) graph_->metadata("classes", json_text(Json(state.encoding.classes)));
  if (const std::uint64_t bytes = onnx::file_bytes(*graph_); bytes > onnx::most_bytes) {
    fail_usage(fmt::format("the model would be {} in ONNX, which holds at most 2 GiB", human_bytes(bytes)),
               "--format safetensors has no such limit");
  }
}

void Exporter::write_parameters(run::ByteSink& sink) const {
  const TrainedModel& trained = models_.front();
  const data::Encoding& encoding = found_.trained.state.encoding;
  const bool flax = request_.layout == model::ParameterLayout::flax;
  std::vector<run::TensorView> tensors;
  std::map<std::string, std::pair<model::StoredParameter, std::span<const std::byte>>> sources;
  const run::Tensors wholes = arrays_of_several(trained, request_.layout);
  tensors.reserve(wholes.size() + trained.parameters.size());
  for (const auto& [name, whole] : wholes) tensors.push_back({name, whole.dtype, whole.shape, whole.bytes});
  for (std::size_t i = 0; i < trained.parameters.size(); ++i) {
    model::StoredParameter stored = model::stored(trained.model.parameters[i], request_.layout);
    if (wholes.contains(stored.name)) continue;
    tensors.push_back({stored.name, DType::f32, stored.shape, {}});
    sources.emplace(stored.name, std::pair(stored, trained.parameters[i]));
  }
  std::map<std::string, std::string> metadata{{"format", flax ? "flax" : "pt"}, {"checkpoint", found_.checkpoint}};
  if (const auto& normalize = trained.model.normalize) {
    metadata["normalize_mean"] = json_text(Json(normalize->mean));
    metadata["normalize_std"] = json_text(Json(normalize->std));
  }
  if (const auto& targets = trained.model.target_statistics) {
    metadata["target_mean"] = json_text(Json(targets->mean));
    metadata["target_std"] = json_text(Json(targets->std));
    if (const std::vector<bool>& logs = trained.model.log_targets; !logs.empty()) {
      metadata["target_log"] = json_text(Json(logs));
    }
  }
  if (!encoding.classes.empty()) metadata["classes"] = json_text(Json(encoding.classes));
  if (!encoding.columns.empty()) {
    metadata["columns"] = json_text(columns_of(encoding));  // a checkpoint bounds the names
    metadata["unknown"] = ignores_unknown_ ? "ignore" : "error";
  }
  const auto write_elements = [&](const run::TensorView& tensor) {
    if (!tensor.bytes.empty()) return sink.write(tensor.bytes);
    const auto& [stored, elements] = sources.at(tensor.name);
    if (stored.is_reordered()) {
      sink.write(model::to_stored(stored, elements, sizeof(float)));
    } else {
      sink.write(elements);
    }
  };
  run::write_safetensors(sink, tensors, write_elements, metadata);
}

void Exporter::write(run::ByteSink& sink) const {
  if (graph_) {
    onnx::write_file(*graph_, [&](std::span<const std::byte> bytes) { sink.write(bytes); });
  } else {
    write_parameters(sink);
  }
  found_.trained.parameters.file.check_intact();
}

}  // namespace pmaptrain::exports
