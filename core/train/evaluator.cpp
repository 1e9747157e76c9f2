#include "core/train/evaluator.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/train/checkpoint.h"
#include "core/train/run_folder.h"
#include "core/train/start.h"
#include "core/train/values.h"

namespace pmaptrain::train {

Evaluator::Evaluator(Module& module, std::size_t entry, const std::shared_ptr<const data::Dataset>& dataset,
                     const data::BatchPlan& batch, const model::Model& model, std::string split)
    : module_(module),
      entry_(entry),
      batch_(batch),
      model_(model),
      split_(std::move(split)),
      loader_(dataset, data::Sampler::in_order(batch.dataset), batch, batch_slots(module, entry, *dataset, batch),
              {0, 0}) {}

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

Evaluation evaluate_checkpoint(const Setup& setup, const std::filesystem::path& run_dir, const std::string& checkpoint,
                               const std::string& split) {
  const bool on_train = split == "train";
  const std::shared_ptr<const data::Dataset> dataset = on_train ? setup.source.train : setup.source.test;
  if ((!on_train && split != setup.source.test_name) || !dataset) {
    throw Error(ExitStatus::usage, Diagnostic{"usage",
                                              {},
                                              "the data has no split '" + split + "'",
                                              setup.source.test ? "there are train and " + setup.source.test_name
                                                                : "there is train: add --split train",
                                              {}});
  }
  const std::filesystem::path folder = find_checkpoint(run_dir, checkpoint);
  const CheckpointFile parameters = load_parameters(folder);
  const data::BatchPlan batch = data::plan_evaluation(dataset->size(), setup.batch.rows_at_once(), setup.batch.devices);
  const std::unique_ptr<Backend> backend = backend_of(setup.spec().mesh);
  const Source source{{{"evaluate", std::make_shared<const Program>(evaluation_program(setup, batch)),
                        data::batches_in_memory(data::Sampler::in_order(batch.dataset), batch)}}};
  check_memory(estimate_evaluation(backend->needs(source)), setup);
  const std::unique_ptr<Module> module = backend->load(source);
  write_group(*module, 0, Group::params, parameters.tensors, parameters.path);
  Evaluation result = *Evaluator(*module, 0, dataset, batch, setup.model, split).run();
  parameters.file.check_intact();
  return result;
}

}  // namespace pmaptrain::train
