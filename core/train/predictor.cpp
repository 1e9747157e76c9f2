#include "core/train/predictor.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/loader.h"
#include "core/ops/all.h"
#include "core/train/checkpoint.h"
#include "core/train/run_folder.h"
#include "core/train/start.h"

namespace pmaptrain::train {
namespace {

using model::PredictionKind;

[[noreturn]] void refuse(std::string message, std::string help) {
  throw Error(ExitStatus::usage, Diagnostic{"usage", {}, std::move(message), std::move(help), {}});
}

std::int64_t chosen_member(const spec::Spec& spec, MemberNumber member) {
  if (spec.ensemble && !member) {
    const std::int64_t members = spec::members(spec);
    refuse("the run is an ensemble of " + counted(members, "member") + ", and predictions are of one",
           "choose it: --member 0 to --member " + std::to_string(members - 1));
  }
  return chosen_members(spec, member).front();
}

PredictionKind chosen_kind(const model::Model& model, const std::optional<PredictionKind>& asked) {
  const bool classifier = model::is_classifier(model);
  if (!asked) return classifier ? PredictionKind::classes : PredictionKind::values;
  if (classifier == (*asked != PredictionKind::values)) return *asked;
  refuse("--as " + std::string(name_of(*asked)) + " does not fit the model: its loss, " + spec::to_string(model.loss) +
             ", is one of " + (classifier ? "classes" : "numbers"),
         classifier ? "there are --as classes, --as probabilities and --as logits" : "there is --as values");
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

Predictor::Predictor(const spec::Loaded& loaded, const std::filesystem::path& run_dir,
                     const PredictionRequest& request) {
  const std::int64_t member = chosen_member(loaded.spec, request.member);
  const spec::Spec& spec = spec::member_spec(loaded.spec, member);
  const CheckpointWeights trained = load_weights(run_dir, request.checkpoint, request.weights);
  const RunState& state = trained.state;
  const CheckpointFile& parameters = trained.parameters;
  check_same_members(loaded.spec, state);
  const bool best = request.checkpoint == "best" && state.is_ensemble;
  if (best) check_has_best(state, member, "--checkpoint last");
  const model::Model model = model::make_model(spec, state.input, state.target, DType::f32, state.encoding);
  predictions_.kind = chosen_kind(model, request.kind);
  data::PredictionInput input = data::open_prediction_input(request.input, spec.data, state.input, state.encoding);
  notes_ = std::move(input.notes);
  predictions_.inputs = std::move(input.dataset);
  predictions_.ids = std::move(input.ids);
  predictions_.skipped = std::move(input.skipped);
  predictions_.tells_errors = spec::skips_errors(spec.data.source);
  predictions_.shape = model::prediction_shape(model, predictions_.kind);
  predictions_.dtype = predictions_.kind == PredictionKind::classes ? DType::i32 : DType::f32;
  predictions_.by_class = model.classes() > 0;
  predictions_.classes = state.encoding.classes;
  predictions_.checkpoint = best ? best_checkpoint(state, member) : checkpoint_name(state.step);

  const std::int64_t rows = data::rows_at_once(spec.data, spec.mesh.mesh, std::max<std::int64_t>(1, state.batch_size));
  // Where no row can be read, nothing is run.
  const std::int64_t examples = std::max<std::int64_t>(1, predictions_.inputs->size());
  batch_ = data::plan_evaluation(examples, rows, spec.mesh.mesh.devices());
  const auto program = std::make_shared<const Program>(optimize(model::prediction_program(
      model, spec.mesh.mesh, spec.data.axes, batch_.rows_per_device, all_ops(), predictions_.kind)));
  const Source source{{{"predict", program, data::batches_in_memory(data::Sampler::in_order(batch_.dataset), batch_)}}};
  const std::unique_ptr<Backend> backend = choose_backend(spec.mesh, source).backend;
  check_memory(estimate_evaluation(backend->needs(source)), batch_);
  module_ = backend->load(source);
  write_group(*module_, 0, 0, Group::params, parameters.of_member(member), parameters.path);
  parameters.file.check_intact();
}

void Predictor::run(const Take& take, const std::atomic<int>* stop) {
  const data::Dataset& inputs = *predictions_.inputs;
  if (inputs.size() == 0) return;
  data::Loader loader(predictions_.inputs, data::Sampler::in_order(batch_.dataset), batch_,
                      batch_slots(*module_, 0, inputs, batch_), {0, batch_.steps_per_epoch});
  const Handle output = module_->output(0, "predictions");
  const std::size_t slice = module_->slice_bytes(output);
  std::vector<std::byte> rows(slice * static_cast<std::size_t>(batch_.devices));
  for (std::int64_t step = 0; step < batch_.steps_per_epoch; ++step) {
    if (stop != nullptr && *stop != 0) return;
    const data::Batch batch = loader.next();
    module_->submit(0, batch.slot);
    Ticket last;
    for (std::int64_t device = 0; device < batch_.devices; ++device) {
      last = module_->read(output, device, std::span(rows).subspan(static_cast<std::size_t>(device) * slice, slice));
    }
    module_->wait(last);
    take(step * batch_.global,
         std::span(rows).first(static_cast<std::size_t>(batch.examples) * predictions_.row_bytes()));
  }
  inputs.check_unchanged();
}

}  // namespace pmaptrain::train
