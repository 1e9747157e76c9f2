#include "core/report/device_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>

#include "core/analysis/cost.h"
#include "core/base/error.h"
#include "core/base/machine.h"
#include "core/input/batches/batch.h"
#include "core/layers/nested.h"
#include "core/ops/all.h"
#include "core/report/sharding.h"
#include "core/setup/options.h"
#include "core/setup/plan.h"
#include "core/setup/programs.h"
#include "core/spec/division.h"
#include "core/step/step_program.h"

namespace pmaptrain::report {
namespace {

// A `repeat` of more than `some` times is estimated from programs of `few` and of `some`: with fewer the memory of a
// step is that of the layers around them.
constexpr std::int64_t few = 4, some = 8;

AxisSet axes_named(const Mesh& mesh, std::initializer_list<DivisionAxis> axes) {
  AxisSet found;
  for (const DivisionAxis axis : axes) {
    if (const std::optional<int> number = mesh.find(to_string(axis))) found = found | AxisSet::of(*number);
  }
  return found;
}

// Calls `work` with 0 to count - 1, on several threads, and throws the error of the first that fails.
template <class Work>
void in_threads(std::size_t count, const Work& work) {
  std::vector<std::exception_ptr> errors(count);
  std::atomic<std::size_t> next = 0;
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> threads;
  const auto most = std::min(count, static_cast<std::size_t>(std::clamp(affinity_cores(), 1, 8)));
  for (std::size_t i = 1; i < most; ++i) threads.emplace_back(take);
  take();
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

// Divisions of one kind; see resized().
bool are_alike(const Division& a, const Division& b) {
  const auto has_data = [](const Division& each) { return each.size(DivisionAxis::data) > 1; };
  return a.size(DivisionAxis::model) == b.size(DivisionAxis::model) && a.stage == b.stage && has_data(a) == has_data(b);
}

// What a device sends of an array that so many have: of a sum, or of all parts.
double part_sent(std::int64_t devices) { return 1 - 1 / static_cast<double>(devices); }

}  // namespace

std::string to_string(DivisionAxis axis) {
  constexpr std::array<const char*, division_axes> names{"data", "shards", "model"};
  return names[static_cast<std::size_t>(axis)];
}

std::vector<Axis> Division::axes() const {
  std::vector<Axis> found;
  for (std::size_t i = 0; i < division_axes; ++i) {
    if (sizes[i] > 1) found.push_back({to_string(static_cast<DivisionAxis>(i)), sizes[i]});
  }
  if (found.empty()) found.push_back({to_string(DivisionAxis::data), 1});
  return found;
}

// What a program of a step is made of.
struct DivisionPlanner::StepFigures {
  BatchPlan batch;
  model::Model model;
  step::StepOptions options;
  step::Optimizer optimizer;

  model::BatchShape rows() const { return {batch.rows_per_device, batch.microbatches}; }
  Program program() const { return setup::optimize(step::train_program(model, options, optimizer, rows(), all_ops())); }
};

DivisionPlanner::DivisionPlanner(const spec::Spec& spec, const data::Source& source) : spec_(spec), source_(source) {
  for (std::size_t i = 0; i < spec.model.layers.size(); ++i) {
    const auto* const repeat = spec.model.layers[i].kind.as<layers::Repeat>();
    if (repeat == nullptr || repeat->times <= some) continue;
    repeats_.push_back(i);
    whole_.push_back(repeat->times);
  }
}

DivisionPlanner::~DivisionPlanner() = default;

std::int64_t DivisionPlanner::times() const {
  return std::max<std::int64_t>(std::accumulate(whole_.begin(), whole_.end(), std::int64_t{0}), 1);
}

DivisionPlanner::Times DivisionPlanner::each(std::int64_t times) const { return Times(repeats_.size(), times); }

spec::Spec DivisionPlanner::divided(const Division& division, const Times& times) const {
  spec::Spec spec = spec_;
  for (std::size_t i = 0; i < repeats_.size(); ++i) {
    layers::Layer& layer = spec.model.layers[repeats_[i]];
    layers::Repeat repeat = *layer.kind.as<layers::Repeat>();
    repeat.times = times[i];
    layer.kind = repeat;
  }
  spec::MeshSpec& mesh = spec.mesh;
  mesh.mesh = Mesh(division.axes());
  mesh.roles = {};
  mesh.roles.data = axes_named(mesh.mesh, {DivisionAxis::data, DivisionAxis::shards});
  mesh.roles.tensor = axes_named(mesh.mesh, {DivisionAxis::model});
  mesh.backend = spec::Backend::cuda;
  mesh.workers = static_cast<int>(division.devices());
  if (mesh.deterministic) mesh.blocks = mesh.workers;  // a GPU has whole blocks
  spec.parallelism.reset();
  if (division.stage > 0) {
    spec::Fsdp fsdp;
    fsdp.stage = division.stage;
    fsdp.axes = axes_named(mesh.mesh, {DivisionAxis::shards});
    spec.parallelism.emplace().fsdp = fsdp;
  }
  // A schedule is a few operations on one number, and its durations may be those of the real data.
  spec.optimizer.learning_rate = schedules::LearningRate(0.001);
  return spec;
}

DivisionPlanner::StepFigures DivisionPlanner::step_of(const spec::Spec& spec, const Division& division) const {
  StepFigures step;
  const std::int64_t rows = std::get<std::int64_t>(spec.data.batch_size), parts = division.batch_devices();
  const std::int64_t unit = parts * spec.data.microbatches;
  if (spec.data.remainder != spec::Remainder::mask && rows % unit != 0) {
    const std::string microbatches =
        spec.data.microbatches > 1 ? fmt::format(" and {} microbatches each", spec.data.microbatches) : std::string();
    throw Error(ExitStatus::usage, Diagnostic{"config",
                                              spec.data.batch_size_place,
                                              fmt::format("{} examples do not divide over {} devices{}: {}", rows,
                                                          parts, microbatches, spec::division(rows, unit)),
                                              "another data.batch_size",
                                              {}});
  }
  // Two whole batches: the sizes of a step do not depend on how many examples there are.
  step.batch = input::plan_training(spec.data, spec::data_mesh(spec.mesh), 2 * rows);
  step.model = setup::model_of(spec, source_, *source_.train);
  step.optimizer = step::make_optimizer(spec.optimizer, step.model, step.batch, 1);
  step.options = setup::step_options(spec);
  return step;
}

void DivisionPlanner::check(const Division& division) const { step_of(divided(division, each(few)), division); }

DeviceFigures DivisionPlanner::measured(const Division& division, const Times& times) {
  const spec::Spec spec = divided(division, times);
  const StepFigures step = step_of(spec, division);
  const auto program = std::make_shared<const Program>(step.program());
  ++programs_;
  Source source;
  source.entries.push_back({"train", program, 3, false, false});  // 3 batches, as a run has them in memory
  source.blocks = spec.mesh.blocks.value_or(1);
  const std::unique_ptr<Planned> planned = setup::backend_of(spec.mesh)->plan(std::move(source));
  const MemoryNeeds needs = [&] {
    const std::lock_guard lock(kernels_);
    return planned->needs();
  }();
  const auto of_one = [&](std::size_t bytes) { return static_cast<double>(bytes) / std::max(needs.gpus, 1); };

  DeviceFigures figures;
  figures.parameters = of_one(needs.parameters);
  figures.state = of_one(needs.optimizer);
  const ShardedSums sums = sharded_sums(step.model, step.optimizer, step.options.sharding, spec.mesh);
  const double on_the_way = of_one(needs.gradients) + of_one(needs.activations);
  figures.gathered = std::min(static_cast<double>(sums.gathered), on_the_way);
  figures.gradients = std::min(static_cast<double>(sums.gradients), on_the_way - figures.gathered);
  figures.activations = on_the_way - figures.gathered - figures.gradients;
  figures.others = of_one(needs.batches) + of_one(needs.data) + of_one(needs.kernels) + of_one(needs.workspace);
  figures.flops = flops_of_device(*program);
  if (const auto along = static_cast<double>(division.size(DivisionAxis::model)); along > 1) {
    figures.duplicated_flops = flops_of_device(*program, spec.mesh.roles.tensor) * (1 - 1 / along);
  }

  for (const auto& [along, bytes] : planned->sent_along(0)) {
    std::size_t axes = 0;
    for (const int axis : along.list()) {
      for (std::size_t k = 0; k < division_axes; ++k) {
        if (spec.mesh.mesh.name(axis) == to_string(static_cast<DivisionAxis>(k))) axes |= std::size_t{1} << k;
      }
    }
    figures.sent[axes] += bytes;
  }
  return figures;
}

std::vector<DeviceFigures> DivisionPlanner::planned(std::span<const Division> divisions) {
  std::vector<DeviceFigures> found(divisions.size());
  in_threads(found.size(), [&](std::size_t i) { found[i] = measured(divisions[i], whole_); });
  return found;
}

std::vector<DivisionPlanner::Times> DivisionPlanner::measured_times() const {
  std::vector<Times> all{repeats_.empty() ? whole_ : each(few)};
  for (std::size_t i = 0; i < repeats_.size(); ++i) {
    all.push_back(each(few));
    all.back()[i] = some;
  }
  return all;
}

DeviceFigures DivisionPlanner::extended(std::span<const DeviceFigures> of_measured_times) const {
  const DeviceFigures& first = of_measured_times.front();
  DeviceFigures total = first;
  for (std::size_t i = 0; i < repeats_.size(); ++i) {
    const double further = static_cast<double>(whole_[i] - few) / static_cast<double>(some - few);
    DeviceFigures added = of_measured_times[i + 1];
    added.combine(first, [&](double more, double fewer) { return (more - fewer) * further; });
    total.combine(added, [](double a, double b) { return std::max(a + b, 0.0); });
  }
  return total;
}

std::vector<DeviceFigures> DivisionPlanner::estimated(std::span<const Division> divisions) {
  // Of the divisions that are alike, the one in the middle is measured.
  std::vector<std::vector<std::size_t>> kinds;
  for (std::size_t i = 0; i < divisions.size(); ++i) {
    const auto known = std::find_if(kinds.begin(), kinds.end(), [&](const std::vector<std::size_t>& kind) {
      return are_alike(divisions[kind.front()], divisions[i]);
    });
    if (known != kinds.end()) {
      known->push_back(i);
    } else {
      kinds.push_back({i});
    }
  }
  const std::vector<Times> all_times = measured_times();
  std::vector<DeviceFigures> of_times(kinds.size() * all_times.size());
  const auto middle = [&](std::size_t kind) { return divisions[kinds[kind][kinds[kind].size() / 2]]; };
  in_threads(of_times.size(), [&](std::size_t i) {
    of_times[i] = measured(middle(i / all_times.size()), all_times[i % all_times.size()]);
  });
  std::vector<DeviceFigures> found(divisions.size());
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const DeviceFigures figures = extended(std::span(of_times).subspan(k * all_times.size(), all_times.size()));
    for (const std::size_t i : kinds[k]) found[i] = resized(figures, middle(k), divisions[i]);
  }
  return found;
}

DeviceFigures resized(DeviceFigures figures, const Division& of, const Division& other) {
  const double fewer = static_cast<double>(of.size(DivisionAxis::shards)) /
                       static_cast<double>(other.size(DivisionAxis::shards));  // elements in a shard
  if (other.stage >= 1) figures.state *= fewer;
  if (other.stage >= 2) figures.gradients *= fewer;
  if (other.stage >= 3) figures.parameters *= fewer;
  for (std::size_t axes = 1; axes < figures.sent.size(); ++axes) {
    if (figures.sent[axes] == 0) continue;
    std::int64_t before = 1, now = 1;
    for (std::size_t i = 0; i < division_axes; ++i) {
      if ((axes >> i & 1u) == 0) continue;
      before *= of.sizes[i];
      now *= other.sizes[i];
    }
    figures.sent[axes] *= part_sent(now) / part_sent(before);
    // Along `data` alone the sums of shards are sent.
    if (axes == 1 && other.stage >= 2) figures.sent[axes] *= fewer;
  }
  return figures;
}

}  // namespace pmaptrain::report
