#include "core/train/evaluator.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/open.h"
#include "core/train/checkpoint.h"
#include "core/train/run_folder.h"
#include "core/train/start.h"
#include "core/train/values.h"

namespace pmaptrain::train {
namespace {

data::Split chosen_split(const spec::DataSpec& spec, const std::optional<std::string>& name) {
  const auto refuse = [](std::string message, std::string help) {
    throw Error(ExitStatus::usage, Diagnostic{"usage", {}, std::move(message), std::move(help), {}});
  };
  std::vector<std::string> names;
  for (const data::Split split : data::all_splits) {
    if (data::has_split(spec, split)) names.emplace_back(data::name_of(split));
  }
  if (!name) {
    for (const data::Split split : {data::Split::test, data::Split::validation}) {
      if (data::has_split(spec, split)) return split;
    }
    refuse("the data has neither a test nor a validation split", "there is train: add --split train");
  }
  const std::optional<data::Split> split = data::split_named(*name);
  if (!split || !data::has_split(spec, *split)) {
    refuse("the data has no split '" + *name + "'",
           names.size() == 1 ? "there is train: add --split train" : "there are " + join(names, ", "));
  }
  return *split;
}

}  // namespace

Evaluator::Evaluator(Module& module, std::size_t entry, const EvaluationPlan& plan, const model::Model& model)
    : module_(module),
      entry_(entry),
      batch_(plan.batch),
      model_(model),
      split_(plan.split),
      loader_(plan.dataset, data::Sampler::in_order(plan.batch.dataset), plan.batch,
              batch_slots(module, entry, *plan.dataset, plan.batch), {0, 0}) {}

std::optional<Evaluation> Evaluator::run(const std::atomic<int>* stop) {
  const Clock::time_point begin = Clock::now();
  loader_.restart(0, batch_.steps_per_epoch);
  const std::vector<model::MeasurePart> parts = model::measure_parts(model_);
  std::vector<std::vector<double>> sums;
  sums.reserve(parts.size());
  for (const model::MeasurePart& part : parts) sums.emplace_back(static_cast<std::size_t>(numel(part.shape)));
  double count = 0;
  for (std::int64_t step = 0; step < batch_.steps_per_epoch; ++step) {
    if (stop != nullptr && *stop != 0) return std::nullopt;
    module_.submit(entry_, loader_.next().slot);
    // The outputs are the parts in their order, then the count.
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::vector<double> found = numbers(module_, module_.output(entry_, i));
      for (std::size_t j = 0; j < found.size(); ++j) sums[i][j] += found[j];
    }
    count +=
        scalar(module_, module_.output(entry_, parts.size()));  // waits for the step, before its batch is given back
  }
  for (std::vector<double>& part : sums) {
    for (double& sum : part) sum /= count;
  }
  Evaluation evaluation{split_, model::finish_measures(model_, sums), static_cast<std::int64_t>(count), 0};
  evaluation.seconds = seconds_since(begin);
  return evaluation;
}

Evaluation evaluate_checkpoint(const spec::Loaded& loaded, const std::filesystem::path& run_dir,
                               const std::string& checkpoint, const std::optional<std::string>& name,
                               spec::Weights weights) {
  const spec::Spec& spec = loaded.spec;
  const data::Split split = chosen_split(spec.data, name);
  const std::filesystem::path folder = find_checkpoint(run_dir, checkpoint);
  const data::Source data = data::open(spec.data, spec.seed, spec.mesh.mesh.devices(), split);
  const data::Dataset& dataset = *data.of(split);
  const model::Model model = model::make_model(spec, dataset.input(), dataset.target());
  model::check_targets(model, dataset, spec.data.source_place);
  const EvaluationPlan plan = plan_evaluation(model, spec, split, data.of(split),
                                              data::rows_at_once(spec.data, spec.mesh.mesh, dataset.size()));
  const CheckpointFile parameters = load_weights(folder, weights);
  const std::unique_ptr<Backend> backend = backend_of(spec.mesh);
  const Source source{
      {{"evaluate", plan.program, data::batches_in_memory(data::Sampler::in_order(plan.batch.dataset), plan.batch)}}};
  check_memory(estimate_evaluation(backend->needs(source)), plan.batch);
  const std::unique_ptr<Module> module = backend->load(source);
  set_loss_numbers(*module, model);
  write_group(*module, 0, Group::params, parameters.tensors, parameters.path);
  Evaluation result = *Evaluator(*module, 0, plan, model).run();
  parameters.file.check_intact();
  return result;
}

}  // namespace pmaptrain::train
