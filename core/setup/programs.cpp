#include "core/setup/programs.h"

#include <algorithm>
#include <utility>

#include "core/analysis/cost.h"
#include "core/data/subset.h"
#include "core/graph/passes.h"
#include "core/input/batches/batch.h"
#include "core/input/batches/padded_sizes.h"
#include "core/input/open.h"
#include "core/ops/all.h"
#include "core/passes/pipeline.h"
#include "core/setup/options.h"

namespace pmaptrain::setup {
namespace {

step::EpochSums epoch_of(const BatchPlan& batch) {
  return batch.steps_per_epoch == 1 ? step::EpochSums::last_step : step::EpochSums::all_steps;
}

// The program of a step of `model`, simplified; see Entry for `work`.
struct TrainingProgram {
  std::shared_ptr<const Program> program;
  step::StepRoles roles;
  double work = 0;
};

TrainingProgram training_program(const Setup& setup, const model::Model& model, const step::Optimizer& optimizer) {
  const model::BatchShape rows{setup.batch.rows_per_device, setup.batch.microbatches};
  step::StepProgram step = step::step_program(model, setup.step, optimizer, rows, all_ops(), epoch_of(setup.batch));
  TrainingProgram made{std::make_shared<const Program>(optimize(std::move(step.program))), std::move(step.roles), 0};
  if (setup.member_spec().fsdp() != nullptr || model.has_remat()) {
    step::StepOptions plain = setup.step;
    plain.sharding = {};
    made.work = work_of(optimize(step::train_program(model.without_remat(), plain, optimizer, rows, all_ops(),
                                                     step::Stage::final, epoch_of(setup.batch))));
  }
  return made;
}

// With bucket_by_length: programs for fewer positions. A model whose layers need more positions, such as take: 40, has
// none for so few.
void make_shorter_programs(Setup& setup) {
  setup.shorter.clear();
  const spec::Spec& spec = setup.member_spec();
  if (!spec.data.bucket_by_length) return;
  const std::shared_ptr<const data::Dataset>& train = setup.training_examples();
  for (const std::int64_t positions : input::padded_sizes(*train)) {
    std::shared_ptr<const data::Dataset> examples =
        data::first_positions(train, positions, setup.training_model().has_padding);
    std::optional<model::Model> model;
    try {
      model = model_of(spec, setup.source, *examples);
    } catch (const Error&) {
      continue;
    }
    if (model->has_padding) model->whole_positions = train->input().shape.front();
    step::Optimizer optimizer = setup.optimizer();
    for (step::ParameterOptions& own : optimizer.parameter_options) {
      if (own.tokens > 0) own.tokens = setup.batch.rows() * numel(model->input.shape);
    }
    TrainingProgram training = training_program(setup, *model, optimizer);
    setup.shorter.push_back({positions, std::move(examples), std::move(training.program), training.work});
  }
}

}  // namespace

Program optimize(Program program) {
  program = run_passes(std::move(program), passes_of_all_backends());
  shrink(program);
  return program;
}

void make_programs(Setup& setup) {
  const spec::Spec& spec = setup.member_spec();
  setup.step = step_options(spec);
  TrainingProgram training = training_program(setup, setup.training_model(), setup.optimizer());
  setup.training = std::move(training.program);
  setup.training_work = training.work;
  setup.roles = std::move(training.roles);
  make_shorter_programs(setup);
  setup.evaluations.clear();
  if (setup.timetable.eval_every == 0) return;
  const model::Weights weights = model::weights_of(spec.train.ema);
  const std::vector<model::Bucket> buckets = step::buckets_of(setup.model, setup.optimizer(), setup.step.sharding);
  for (const data::Split split : {data::Split::validation, data::Split::test}) {
    const auto& dataset = setup.source.of(split);
    if (!dataset) continue;
    setup.evaluations.push_back(
        plan_evaluation(setup.model, spec, split, dataset, setup.batch.rows_at_once(), weights, buckets));
  }
}

Setup with_batches(Setup setup, std::int64_t batch_size, std::int64_t microbatches) {
  const auto set = [&](spec::Spec& spec) {
    spec.data.batch_size = batch_size;
    spec.data.microbatches = microbatches;
  };
  spec::Spec& spec = setup.loaded.spec;
  set(spec);
  if (spec.ensemble) std::for_each(spec.ensemble->alone.begin(), spec.ensemble->alone.end(), set);
  // A batch serves all members, so the first member's config has its size.
  const spec::Spec& first = setup.member_spec();
  setup.batch = input::plan_training(first.data, spec::data_mesh(first.mesh), setup.source.train->size());
  make_programs(setup);
  return setup;
}

Setup with_sharding(Setup setup, int stage) {
  spec::Spec& spec = setup.loaded.spec;
  spec::Fsdp fsdp;
  fsdp.stage = stage;
  fsdp.axes = spec.mesh.roles.data;
  if (!spec.parallelism) spec.parallelism.emplace();
  spec.parallelism->fsdp = std::move(fsdp);
  make_programs(setup);
  return setup;
}

Program program_at(const Setup& setup, step::Stage stage) {
  return step::train_program(setup.training_model(), setup.step, setup.optimizer(),
                             {setup.batch.rows_per_device, setup.batch.microbatches}, all_ops(), stage,
                             epoch_of(setup.batch));
}

EvaluationPlan plan_evaluation(const model::Model& model, const spec::Spec& spec, data::Split split,
                               std::shared_ptr<const data::Dataset> dataset, std::int64_t rows, model::Weights weights,
                               std::span<const model::Bucket> buckets) {
  const BatchPlan batch = input::plan_evaluation(dataset->size(), rows, spec::data_mesh(spec.mesh).devices());
  const auto program = [&](const model::Sharding& sharding) {
    return optimize(model::evaluation_program(model, spec.mesh.mesh, spec.mesh.roles.data, batch.rows_per_device,
                                              all_ops(), weights, buckets, sharding));
  };
  return {std::string(data::name_of(split)), std::move(dataset), batch,
          std::make_shared<const Program>(program(step_options(spec).sharding)),
          spec.fsdp() != nullptr ? work_of(program({})) : 0};
}

StepCost cost_of(const Program& program) {
  const Cost cost = pmaptrain::cost_of(program);
  StepCost total{cost.flops, {}};
  for (const Axis& axis : program.mesh.axes()) total.wire_bytes.emplace_back(axis.name, 0.0);
  for (const auto& [axes, bytes] : cost.wire) {
    std::size_t outermost = 0;
    while (!axes.contains(static_cast<int>(outermost))) ++outermost;
    total.wire_bytes[outermost].second += bytes;
  }
  return total;
}

StepCost cost_of(const Program& training, const spec::Spec& spec) {
  StepCost cost = setup::cost_of(training);
  if (!spec.ensemble) return cost;
  cost.flops *= static_cast<double>(spec::members(spec));
  StepCost whole{cost.flops, {}};
  for (const Axis& axis : spec.mesh.mesh.axes()) {
    const auto sent = std::find_if(cost.wire_bytes.begin(), cost.wire_bytes.end(),
                                   [&](const auto& entry) { return entry.first == axis.name; });
    whole.wire_bytes.emplace_back(axis.name, sent != cost.wire_bytes.end() ? sent->second : 0.0);
  }
  return whole;
}

}  // namespace pmaptrain::setup
