#include "core/evaluate/predictor.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/tables/csv_source.h"
#include "core/evaluate/threshold.h"
#include "core/evaluate/trained_members.h"
#include "core/losses/quantile.h"
#include "core/ops/all.h"
#include "core/setup/data_checks.h"
#include "core/setup/options.h"
#include "core/setup/processes.h"
#include "core/setup/programs.h"

namespace pmaptrain::evaluate {
namespace {

using model::PredictionKind;

PredictionKind chosen_kind(const model::Model& model, const std::optional<PredictionKind>& asked) {
  const bool classifier = model::is_classifier(model);
  if (!asked) return classifier ? PredictionKind::classes : PredictionKind::values;
  if (classifier == (*asked != PredictionKind::values)) return *asked;
  fail_usage("--as " + std::string(name_of(*asked)) + " does not fit the model: its loss, " + model.loss->name() +
                 ", is one of " + (classifier ? "classes" : "numbers"),
             classifier ? "there are --as classes, --as probabilities and --as logits" : "there is --as values");
}

// The kind of output that each of several members computes for a prediction. For a classifier: the last layer's
// outputs.
PredictionKind kind_of_each_member(PredictionKind kind, const spec::Spec& spec) {
  if (kind == PredictionKind::logits) {
    fail_usage("--as logits does not fit an ensemble: probabilities are averaged over its members, logits are not",
               "choose a member, --member 0 to --member " + std::to_string(spec::members(spec) - 1) +
                   ", or --as probabilities");
  }
  return kind == PredictionKind::values ? kind : PredictionKind::logits;
}

// The layer whose outputs are asked for. Throws Error for one that is not there, and for several members, whose
// features have nothing to do with each other.
const model::Node& features_node(const model::Model& model, const std::string& path, bool is_whole_ensemble) {
  const model::Node* const node = model::node_named(model, path);
  if (node == nullptr) {
    std::vector<std::string> names;
    for (const model::Node* const one : model.nodes()) names.push_back(one->name);
    const std::string near = nearest(path, names);
    fail_usage("--features: the model has no layer '" + path + "'",
               (near.empty() ? "" : "did you mean '" + near + "'? ") + "its layers are " + join(names, ", "));
  }
  if (is_whole_ensemble) {
    fail_usage(
        "--features takes one member of an ensemble: the features of its members have no mean that says anything",
        "choose a member, such as --member 0");
  }
  return *node;
}

template <class T>
void put(std::vector<std::byte>& bytes, T value) {
  const auto* const begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof value);
}

// The class that the outputs of one label mean: the largest of the first `choices`, the first of equal ones; for a
// single output, whether it is above `threshold`.
std::int32_t class_of(std::span<const float> outputs, float threshold, std::size_t choices) {
  if (outputs.size() == 1) return static_cast<std::int32_t>(outputs.front() > threshold);
  outputs = outputs.first(std::min(choices, outputs.size()));
  return static_cast<std::int32_t>(std::max_element(outputs.begin(), outputs.end()) - outputs.begin());
}

}  // namespace

std::string_view name_of(PredictionKind kind) {
  switch (kind) {
    case PredictionKind::classes: return "classes";
    case PredictionKind::probabilities: return "probabilities";
    case PredictionKind::logits: return "logits";
    case PredictionKind::values: break;
  }
  return "values";
}

Predictor::Predictor(const spec::Loaded& loaded, const std::filesystem::path& run_dir, const PredictionRequest& request,
                     SharedBatches shared)
    : shared_(shared) {
  const TrainedMembers found =
      load_members(loaded, run_dir, request.checkpoint, request.weights, request.member, shared_.first_process());
  const run::RunState& state = found.trained.state;
  const run::CheckpointFile& parameters = found.trained.parameters;
  predictions_.left_out = found.left_out;
  predictions_.checkpoint = found.checkpoint;
  const spec::Spec& spec = spec::member_spec(loaded.spec, found.members.front());
  const model::Model model = setup::model_of(spec, state.input, state.target, state.encoding);
  predictions_.kind = chosen_kind(model, request.kind);
  std::optional<double> threshold;
  if (request.threshold) {
    check_takes_threshold(model, "--threshold");
    if (predictions_.kind != PredictionKind::classes) {
      fail_usage("--threshold chooses classes by their probability; there are none to choose with --as " +
                     std::string(name_of(predictions_.kind)),
                 "leave out --as, or write --as classes");
    }
    threshold = request.threshold();
    if (model::is_of_two_classes(model)) of_second_ = threshold;
  }
  classes_ = model.output.empty() ? 1 : model.output.back();
  choices_ = classes_;
  if (predictions_.kind == PredictionKind::classes && model.classes() > 1 && !model::class_threshold(model)) {
    const std::int64_t known = state.encoding.class_count();
    if (known > 0 && known < classes_) choices_ = known;
  }
  const bool has_spare_outputs = choices_ < classes_;
  const model::Node* const node =
      request.features.empty() ? nullptr : &features_node(model, request.features, found.is_whole_ensemble);
  combines_ = found.is_whole_ensemble || threshold;
  const PredictionKind computed = combines_ ? kind_of_each_member(predictions_.kind, loaded.spec) : predictions_.kind;
  threshold_ = static_cast<float>(model::class_threshold(model, threshold.value_or(0.5)).value_or(0));
  input::PredictionInput input = input::open_prediction_input(request.input, spec.data, state.input, state.encoding);
  notes_ = std::move(input.notes);
  if (has_spare_outputs && node == nullptr) {
    notes_.push_back("the model has " + with_commas(classes_) + " outputs and the training examples " +
                     with_commas(choices_) + (choices_ == 1 ? " class" : " classes") + ": " +
                     (choices_ + 1 == classes_ ? "output " : "outputs " + with_commas(choices_) + " to ") +
                     with_commas(classes_ - 1) + " cannot be predicted");
  }
  predictions_.inputs = std::move(input.dataset);
  setup::check_tokens(model, *predictions_.inputs, {});
  predictions_.ids = std::move(input.ids);
  predictions_.skipped = std::move(input.skipped);
  predictions_.lists_unreadable_rows = spec.data.source->skips_errors();
  predictions_.shape = model::prediction_shape(model, predictions_.kind);
  predictions_.dtype = predictions_.kind == PredictionKind::classes  ? DType::i32
                       : predictions_.kind == PredictionKind::values ? model::dtype_of_values(model)
                                                                     : DType::f32;
  predictions_.by_class = model.classes() > 0;
  if (const auto* const quantile = model.loss.as<losses::Quantile>()) predictions_.quantiles = quantile->q;
  predictions_.by_label = model.is_multi_label();
  const auto* const csv = spec.data.source.as<data::Csv>();
  if (predictions_.by_label && csv != nullptr && predictions_.kind == PredictionKind::classes)
    predictions_.label_separator = csv->label_separator.value_or("");
  predictions_.has_deviations = found.is_whole_ensemble && predictions_.kind == PredictionKind::values;
  predictions_.classes = state.encoding.classes;
  if (node != nullptr) show_features(*node);

  if (!shared_.is_alone()) {
    std::string options = "predict " + std::string(name_of(predictions_.kind)) + " " + request.features + " of";
    for (const std::int64_t member : found.members) options += " " + std::to_string(member);
    input::Content inputs = input::content_of(request.input.path);
    inputs.key = "--input";
    setup::check_processes(
        *shared_.agreement(), spec.mesh,
        {loaded.resolved, options, std::to_string(predictions_.inputs->input().bytes()), "", {inputs}});
  }
  const std::int64_t rows =
      input::rows_at_once(spec.data, spec::data_mesh(spec.mesh), std::max<std::int64_t>(1, state.batch_size));
  // A plan needs an example. If no row can be read, the plan does not run.
  const std::int64_t examples = std::max<std::int64_t>(1, predictions_.inputs->size());
  const BatchPlan batch = input::plan_evaluation(examples, rows, spec::data_mesh(spec.mesh).devices());
  batch_size_ = batch.global;
  output_kind_ = model::output_kind(model);
  outputs_per_example_ = numel(model.output);
  if (node != nullptr) {
    outputs_ = std::make_unique<MemberOutputs>(
        spec, model,
        model::features_program(model, spec.mesh.mesh, spec.mesh.roles.data, batch.rows_per_device, all_ops(), *node),
        predictions_.inputs, batch, found.members, found.trained, shared_);
    parameters.file.check_intact();
    return;
  }
  outputs_ = std::make_unique<MemberOutputs>(spec, model, computed, predictions_.inputs, batch, found.members,
                                             found.trained, shared_,
                                             has_spare_outputs && !combines_ ? std::optional(choices_) : std::nullopt);
  parameters.file.check_intact();
}

void Predictor::show_features(const model::Node& node) {
  predictions_.features = node.name;
  predictions_.kind = PredictionKind::values;
  predictions_.shape = node.output;
  predictions_.dtype = DType::f32;
  predictions_.by_class = predictions_.by_label = predictions_.has_deviations = false;
  predictions_.quantiles.clear();
  predictions_.label_separator.clear();
}

// The rows of an ensemble's mean, or by a threshold. Else the outputs of the one member are the predictions.
std::span<const std::byte> Predictor::combined() {
  if (!combines_) return outputs_->rows(0);
  combined_.clear();
  if (predictions_.kind != PredictionKind::values) {
    const EnsembleMean found = ensemble_mean(*outputs_, output_kind_, classes_);
    if (predictions_.kind == PredictionKind::probabilities) {
      for (const float chance : found.probabilities) put(combined_, chance);
      return combined_;
    }
    // Each label has the same number of outputs. An example that is a sequence has several labels.
    const auto size = static_cast<std::size_t>(outputs_per_example_ / numel(predictions_.shape));
    for (std::size_t at = 0; at < found.outputs.size(); at += size) {
      if (of_second_) {
        put(combined_, static_cast<std::int32_t>(static_cast<double>(found.probabilities[at + 1]) > *of_second_));
        continue;
      }
      put(combined_,
          class_of(std::span(found.outputs).subspan(at, size), threshold_, static_cast<std::size_t>(choices_)));
    }
    return combined_;
  }
  const std::vector<double> means = mean_over_members(*outputs_), deviations = deviation_over_members(*outputs_);
  const auto put_value = [&](double value) {
    predictions_.dtype == DType::f64 ? put(combined_, value) : put(combined_, static_cast<float>(value));
  };
  const auto values = static_cast<std::size_t>(outputs_per_example_);
  for (std::size_t at = 0; at < means.size(); at += values) {
    for (std::size_t i = 0; i < values; ++i) put_value(means[at + i]);
    for (std::size_t i = 0; i < values; ++i) put_value(deviations[at + i]);
  }
  return combined_;
}

int Predictor::run(const Take& take, const std::atomic<int>* stop) {
  if (predictions_.inputs->size() == 0) return 0;
  outputs_->restart();
  for (std::int64_t step = 0; step < outputs_->batches(); ++step) {
    const int signal = shared_.has_read(step, stop != nullptr ? stop->load() : 0);
    if (signal != 0) return signal;
    const auto examples = static_cast<std::size_t>(outputs_->next());
    if (take) take(step * batch_size_, combined().first(examples * predictions_.row_bytes()));
  }
  predictions_.inputs->check_unchanged();
  shared_.meet();
  return 0;
}

}  // namespace pmaptrain::evaluate
