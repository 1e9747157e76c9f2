#include "core/setup/options.h"

#include <algorithm>

#include "core/data/arrays/npz_source.h"
#include "core/data/texts/text_source.h"

namespace pmaptrain::setup {
namespace {

// What the config leaves to the training split.
const FieldStatistics& learned(const std::optional<FieldStatistics>& statistics, const std::string& key,
                               const Place& place) {
  if (statistics) return *statistics;
  throw Error(ExitStatus::usage, Diagnostic{"config",
                                            place,
                                            key + ": auto has no statistics of the training split to take",
                                            "a run that was trained with " + key + ": auto has them in its checkpoints",
                                            {}});
}

model::Sharding sharding_of(const spec::Spec& spec) {
  const spec::Fsdp* const fsdp = spec.fsdp();
  if (fsdp == nullptr) return {};
  const auto from = [&](int stage) { return fsdp->stage >= stage ? fsdp->axes : AxisSet(); };
  return {from(1), from(2), from(3), fsdp->axes == spec.mesh.roles.data,
          fsdp->stage >= 2 && spec.data.microbatches == 1};
}

}  // namespace

model::Options model_options(const spec::Spec& spec, const data::Field& target, const data::Encoding& encoding) {
  const spec::DataSpec& of_data = spec.data;
  model::Options options;
  options.layers = spec.model.layers;
  options.loss = spec.loss;
  options.metrics = spec.metrics;
  options.precision = spec.precision;
  options.lora = spec.lora;
  options.mesh = spec.mesh.mesh;
  options.data_axes = spec.mesh.roles.data;
  options.tensor_axes = spec.mesh.roles.tensor;
  if (const spec::Tensor* const tensor = spec.tensor()) options.tensor_place = tensor->place;
  if (const auto& given = of_data.normalize) {
    options.normalize = given->automatic ? learned(encoding.statistics, "normalize", of_data.normalize_place)
                                         : FieldStatistics{given->mean, given->std};
  }
  if (of_data.normalize_targets && is_floating(target.dtype)) {
    options.target_statistics = learned(encoding.targets, "normalize_targets", of_data.normalize_targets_place);
    const std::vector<data::TargetScale> scales =
        spec::target_scales(of_data, std::ssize(options.target_statistics->mean));
    if (std::count(scales.begin(), scales.end(), data::TargetScale::log) > 0) {
      for (const data::TargetScale scale : scales) options.log_targets.push_back(scale == data::TargetScale::log);
    }
  }
  options.weighted_examples = of_data.source && of_data.source->has_weights();
  options.lengths = of_data.source && of_data.source->has_lengths();
  options.class_weights = encoding.class_weights;
  options.initial_values = spec.model.initial_values;
  options.numeric_targets = of_data.numeric_targets;
  if (const auto* const npz = of_data.source.as<data::Npz>()) {
    if (npz->channels == data::Channels::last || npz->channels == data::Channels::first) {
      options.channels = declare::word_of(npz->channels);
    }
  }
  if (const auto* const text = of_data.source.as<data::TextFiles>()) {
    options.text_tokens = target.tokens > 0 ? target.tokens : 65536;
  }
  for (const data::Encoding::Column& column : encoding.columns) {
    options.columns.push_back({column.name, std::ssize(column.categories)});
  }
  options.data_place = of_data.source_place;
  options.normalize_place = of_data.normalize_place;
  options.loss_place = spec.loss_place;
  options.metrics_place = spec.metrics_place;
  return options;
}

step::StepOptions step_options(const spec::Spec& spec) {
  return {spec.mesh.mesh,
          spec.mesh.roles.data,
          sharding_of(spec),
          spec.train.ema,
          spec.train.on_nonfinite == spec::OnNonfinite::halt,
          spec.data.microbatches_place};
}

model::Model model_of(const spec::Spec& spec, const data::Field& input, const data::Field& target,
                      const data::Encoding& encoding) {
  return model::make_model(model_options(spec, target, encoding), input, target);
}

model::Model undivided_model_of(const spec::Spec& spec, const data::Field& input, const data::Field& target,
                                const data::Encoding& encoding) {
  model::Options options = model_options(spec, target, encoding);
  options.tensor_axes = {};
  return model::make_model(options, input, target);
}

}  // namespace pmaptrain::setup
