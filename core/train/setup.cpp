#include "core/train/setup.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/analysis/cost.h"
#include "core/base/text.h"
#include "core/data/open.h"
#include "core/graph/passes.h"
#include "core/ops/all.h"
#include "core/passes/fuse.h"
#include "core/passes/fuse_epilogues.h"
#include "core/passes/remove_identities.h"
#include "core/train/initialize.h"

namespace pmaptrain::train {
namespace {

constexpr std::int64_t max_steps = 1'000'000'000'000;

Timetable make_timetable(const spec::Spec& spec, const data::BatchPlan& batch, bool has_test) {
  Timetable timetable;
  timetable.steps_per_epoch = batch.steps_per_epoch;
  timetable.steps = to_steps(spec.train.duration, batch, "train.duration");
  const auto interval = [&](const spec::Interval& given, const std::string& key) {
    return given ? to_steps(*given, batch, key) : 0;
  };
  timetable.log_every = interval(spec.train.log_every, "train.log_every");
  timetable.eval_every = has_test ? interval(spec.train.eval_every, "train.eval_every") : 0;
  timetable.verify_every = interval(spec.train.verify_replicas, "train.verify_replicas");
  return timetable;
}

// What the config sets for a test split, of which there is none.
std::vector<std::string> unused_keys(const spec::TrainSpec& train) {
  if (!train.eval_every || train.eval_every_is_default) return {};
  const Place& place = train.eval_every->place;
  const std::string where =
      place.line > 0 ? " (" + place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ")"
                     : "";
  return {"train.eval_every" + where + " does nothing: the data has no test split"};
}

// What runs: the same bits from fewer passes over memory.
Program optimize(Program program) { return fuse(fuse_epilogues(remove_identities(std::move(program)))); }

}  // namespace

Setup make_setup(spec::Loaded loaded, std::optional<std::int64_t> schedule_steps) {
  Setup setup;
  setup.loaded = std::move(loaded);
  const spec::Spec& spec = setup.spec();
  const std::int64_t devices = setup.mesh().devices();
  setup.source = data::open(spec.data, spec.seed, devices);
  const data::Dataset& train = *setup.source.train;
  setup.batch = data::plan_training(spec.data, setup.mesh(), train.size());
  setup.model = model::make_model(spec, train.input(), train.target());
  model::check_targets(setup.model, train, spec.data.source_place);
  if (setup.source.test) model::check_targets(setup.model, *setup.source.test, spec.data.source_place);
  check_initial_file(setup.model, spec.model);
  if (!setup.source.test) setup.warnings = unused_keys(spec.train);
  setup.timetable = make_timetable(spec, setup.batch, setup.source.test != nullptr);
  setup.schedule_steps = schedule_steps.value_or(setup.timetable.steps);
  setup.optimizer = make_optimizer(spec.optimizer, setup.model, setup.batch, setup.schedule_steps);
  StepProgram step = step_program(setup.model, spec, setup.optimizer,
                                  {setup.batch.rows_per_device, setup.batch.microbatches}, all_ops());
  setup.training = std::make_shared<const Program>(optimize(std::move(step.program)));
  setup.roles = std::move(step.roles);
  if (setup.timetable.eval_every > 0) {
    setup.evaluation_batch = data::plan_evaluation(setup.source.test->size(), setup.batch.rows_at_once(), devices);
    const model::Weights weights = model::weights_of(spec.train.ema);
    setup.evaluation = std::make_shared<const Program>(evaluation_program(setup, *setup.evaluation_batch, weights));
  }
  return setup;
}

Program program_at(const Setup& setup, Stage stage) {
  return train_program(setup.model, setup.spec(), setup.optimizer,
                       {setup.batch.rows_per_device, setup.batch.microbatches}, all_ops(), stage);
}

Program evaluation_program(const Setup& setup, const data::BatchPlan& batch, model::Weights weights) {
  return optimize(model::evaluation_program(setup.model, setup.mesh(), setup.spec().data.axes, batch.rows_per_device,
                                            all_ops(), weights));
}

std::int64_t to_steps(const spec::Duration& duration, const data::BatchPlan& batch, const std::string& key) {
  const auto refuse = [&](std::string message, std::string help) {
    throw Error(ExitStatus::usage, Diagnostic{"config", duration.place, std::move(message), std::move(help), {}});
  };
  double steps = static_cast<double>(duration.count);
  if (duration.unit == spec::Unit::epochs) steps *= static_cast<double>(batch.steps_per_epoch);
  if (duration.unit == spec::Unit::examples) {
    if (duration.count % batch.global != 0) {
      const std::int64_t below = duration.count / batch.global * batch.global;
      refuse(key + ": " + std::to_string(duration.count) + " examples are not whole batches of " +
                 std::to_string(batch.global),
             (below > 0 ? std::to_string(below) + " or " : "") + std::to_string(below + batch.global) +
                 " examples would be");
    }
    steps /= static_cast<double>(batch.global);
  }
  if (steps < 1) refuse(key + " comes to no step", "give at least 1 step");
  if (steps > static_cast<double>(max_steps)) {
    refuse(key + " comes to more than " + with_commas(max_steps) + " steps", "a step counter would not hold them");
  }
  return static_cast<std::int64_t>(steps);
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

}  // namespace pmaptrain::train
