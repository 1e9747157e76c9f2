#include "core/model/batch.h"

#include <optional>

#include "core/equations/arithmetic.h"
#include "core/graph/check.h"
#include "core/graph/passes.h"
#include "core/model/gathers.h"
#include "core/model/prediction.h"
#include "core/model/row_metrics.h"

namespace pmaptrain::model {
namespace {

Value declare(Builder& b, const char* name, const Field& field, AxisSet axes, std::int64_t rows) {
  Shape shape{rows};
  shape.insert(shape.end(), field.shape.begin(), field.shape.end());
  return b.input(Group::batch, name, {field.dtype, std::move(shape), axes});
}

}  // namespace

BatchInputs declare_batch(Builder& b, const Model& model, AxisSet axes, std::int64_t rows, bool training) {
  BatchInputs batch;
  batch.inputs = declare(b, "inputs", model.input, axes, rows);
  batch.targets = declare(b, "targets", model.target, axes, rows);
  batch.mask = declare(b, "mask", {DType::f32, {}}, axes, rows);
  if (training) batch.rows = declare(b, "rows", {DType::i64, {}}, axes, rows);
  if (model.has_lengths) batch.lengths = declare(b, "lengths", {DType::i32, {}}, axes, rows);
  return batch;
}

Weights weights_of(const std::optional<optimizers::Ema>& ema) {
  if (!ema) return Weights::raw;
  return ema->debias ? Weights::debiased_ema : Weights::ema;
}

namespace {

// Outputs of the program: the sums of all measures over all devices, and the rows that metrics need. `chances` are the
// probabilities, where these are not made of the outputs.
void add_measures(Builder& b, const Model& model, Value output, const BatchInputs& batch, const Numbers& numbers,
                  std::optional<Value> chances = std::nullopt) {
  const LocalSums sums = local_sums(b, model, output, batch.targets, batch.mask, numbers, batch.lengths);
  const Builder::Scope scope(b, {"synchronise", {}});
  std::vector<Synchronised> local;
  for (Value sum : sums.measures) local.push_back({sum, {}});
  local.push_back({sums.count, {}});
  const std::vector<Value> global = synchronise(b, local);
  const std::vector<metrics::MeasurePart> parts = measure_parts(model);
  for (std::size_t i = 0; i < parts.size(); ++i) b.output(parts[i].name, global[i]);
  b.output("count", global.back());
  if (row_size(model) == 0) return;
  b.output("rows", gathered_rows(b, model, output, chances, batch.targets, batch.mask));
}

}  // namespace

Program evaluation_program(const Model& model, const Mesh& mesh, AxisSet axes, std::int64_t rows_per_device,
                           const OpSet& ops, Weights weights, std::span<const Bucket> buckets,
                           const Sharding& sharding) {
  Program program;
  program.name = "evaluation";
  program.mesh = mesh;
  Builder b(program, ops);
  const ParameterInputs stored = declare_parameters(b, model, buckets, sharding, weights != Weights::raw);
  const BatchInputs batch = declare_batch(b, model, axes, rows_per_device, false);
  const std::vector<Number> declared = loss_numbers(model);
  const std::vector<Value> of_loss = declare_numbers(b, declared);
  std::optional<Value> correction;
  if (weights == Weights::debiased_ema) correction = b.input(Group::hyper, "ema/correction", {model.dtype, {}, {}});
  // Averages begin at zero, which the correction takes out.
  const auto debiased = [&](std::size_t parameter, Value whole) {
    if (!correction || model.parameters[parameter].lora == LoraRole::base) return whole;
    const Builder::Scope scope(b, {"ema", model.parameters[parameter].place});
    return div(b, whole, *correction);
  };
  std::vector<Value> parameters = stored.single;
  const std::vector<Bucket> gathered = with_base(buckets, model, sharding);
  std::vector<Value> shards = stored.buckets;
  shards.insert(shards.end(), stored.base.begin(), stored.base.end());
  Gathers gathers(b, model, gathered, shards, parameters, debiased);
  const bool by_groups = gathers_by_groups(model, sharding);
  if (!by_groups) parameters = unpack_parameters(b, model, buckets, stored, debiased);
  Forward forward{batch.inputs, parameters};
  forward.lengths = batch.lengths;
  const Value output = apply(b, model, forward, by_groups ? &gathers : nullptr);
  add_measures(b, model, output, batch, {declared, of_loss});
  check(program, "building the evaluation step");
  return program;
}

Program averaged_evaluation_program(const Model& model, const Mesh& mesh, AxisSet axes, std::int64_t rows_per_device,
                                    const OpSet& ops) {
  Program program;
  program.name = "averaged_evaluation";
  program.mesh = mesh;
  Builder b(program, ops);
  const Value outputs = declare(b, "outputs", {DType::f32, model.output}, axes, rows_per_device);
  std::optional<Value> chances;
  if (row_size(model) > 0) chances = declare(b, "probabilities", {DType::f32, model.output}, axes, rows_per_device);
  BatchInputs batch;
  batch.targets = declare(b, "targets", model.target, axes, rows_per_device);
  batch.mask = declare(b, "mask", {DType::f32, {}}, axes, rows_per_device);
  if (model.has_padded_numbers()) batch.lengths = declare(b, "lengths", {DType::i32, {}}, axes, rows_per_device);
  const std::vector<Number> declared = loss_numbers(model);
  const std::vector<Value> of_loss = declare_numbers(b, declared);
  const Value output =
      model.log_targets.empty() ? cast(b, outputs, model.dtype) : normalised_targets(b, model, outputs);
  add_measures(b, model, output, batch, {declared, of_loss}, chances);
  check(program, "building the evaluation of averages");
  return program;
}

}  // namespace pmaptrain::model
