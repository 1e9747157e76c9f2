#include "core/model/batch.h"

#include "core/graph/check.h"
#include "core/graph/passes.h"

namespace pmaptrain::model {

BatchInputs declare_batch(Builder& b, const Model& model, AxisSet axes, std::int64_t rows, bool training) {
  const auto declare = [&](const char* name, const data::Field& field) {
    Shape shape{rows};
    shape.insert(shape.end(), field.shape.begin(), field.shape.end());
    return b.input(Group::batch, name, {field.dtype, std::move(shape), axes});
  };
  BatchInputs batch;
  batch.inputs = declare("inputs", model.input);
  batch.targets = declare("targets", model.target);
  batch.mask = declare("mask", {DType::f32, {}});
  if (training) batch.rows = declare("rows", {DType::i64, {}});
  return batch;
}

Program evaluation_program(const Model& model, const Mesh& mesh, AxisSet axes, std::int64_t rows_per_device,
                           const OpSet& ops) {
  Program program;
  program.name = "evaluation";
  program.mesh = mesh;
  Builder b(program, ops);
  std::vector<Value> parameters;
  for (const Parameter& parameter : model.parameters) {
    parameters.push_back(b.input(Group::params, parameter.name, {model.dtype, parameter.shape, {}}));
  }
  const BatchInputs batch = declare_batch(b, model, axes, rows_per_device, false);
  const Value output = apply(b, model, {batch.inputs, parameters});
  const LocalSums sums = local_sums(b, model, output, batch.targets, batch.mask);

  const Builder::Scope scope(b, {"synchronise", {}});
  std::vector<Synchronised> local;
  for (Value sum : sums.measures) local.push_back({sum, {}});
  local.push_back({sums.count, {}});
  const std::vector<Value> global = synchronise(b, local);
  const std::vector<MeasurePart> parts = measure_parts(model);
  for (std::size_t i = 0; i < parts.size(); ++i) b.output(parts[i].name, global[i]);
  b.output("count", global.back());
  check(program, "building the evaluation step");
  return program;
}

}  // namespace pmaptrain::model
