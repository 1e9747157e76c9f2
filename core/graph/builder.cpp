#include "core/graph/builder.h"

#include <cassert>

namespace pmaptrain {

Value Builder::new_value(Type type) {
  program_.types.push_back(std::move(type));
  return Value{static_cast<std::int32_t>(program_.types.size() - 1)};
}

Value Builder::input(Group group, std::string name, Type type) {
  Layout layout{type.shape};
  const Value value = new_value(std::move(type));
  program_.inputs.push_back({std::move(name), group, value, std::nullopt, {}, std::move(layout)});
  return value;
}

Value Builder::input(Group group, std::string name, DType dtype, Layout layout) {
  const Value value = new_value({dtype, local_shape(layout, mesh()), layout.axes()});
  program_.inputs.push_back({std::move(name), group, value, std::nullopt, {}, std::move(layout)});
  return value;
}

Value Builder::bucket(Group group, std::string name, DType dtype, std::vector<Part> parts, Layout layout) {
  const Value value = input(group, std::move(name), dtype, std::move(layout));
  Input& bucket = program_.inputs.back();
  bucket.parts = std::move(parts);
  program_.types[static_cast<std::size_t>(value.id)].varying = bucket.divided();
  return value;
}

Value Builder::emit(const Op& op, std::span<const Value> operands) {
  const std::vector<Value>& results = append(op, varied(op, operands), {});
  assert(results.size() == 1);
  return results.front();
}

std::vector<Value> Builder::emit_all(const Op& op, std::span<const Value> operands) {
  return append(op, varied(op, operands), {});
}

std::vector<Value> Builder::varied(const Op& op, std::span<const Value> operands) {
  std::vector<Value> values(operands.begin(), operands.end());
  if (op.local() && !op.rules().view) {
    AxisSet all;
    for (Value value : values) all = all | program_.type(value).varying;
    for (Value& value : values) value = vary(value, all);
  }
  return values;
}

std::vector<Value> Builder::emit_region(const Op& op, std::span<const Value> operands,
                                        std::span<const Type> param_types, const Body& body) {
  Region region;
  for (const Type& type : param_types) region.params.push_back(new_value(type));
  // The body's equations go into the region: pvary included, so that it never reaches outside.
  std::vector<Equation>* const outer = std::exchange(current_, &region.equations);
  std::vector<Rematerialised> of_outer = std::exchange(rematerialised_, {});
  const auto leave = [&] {
    current_ = outer;
    rematerialised_ = std::move(of_outer);
  };
  try {
    region.results = body(region.params);
  } catch (...) {
    leave();
    throw;
  }
  leave();
  std::vector<Region> regions;
  regions.push_back(std::move(region));
  return append(op, {operands.begin(), operands.end()}, std::move(regions));
}

const std::vector<Value>& Builder::append(const Op& op, std::vector<Value> operands, std::vector<Region> regions) {
  const std::span<const Type> operand_types = operand_types_.of(program_, operands);
  std::vector<Type> params, yields;
  if (!regions.empty()) {
    params = types_of(program_, regions.front().params);
    yields = types_of(program_, regions.front().results);
  }
  std::vector<Type> result_types;
  try {
    result_types =
        op.infer({mesh(), operand_types, params, yields, regions.empty() ? nullptr : &regions.front(), program_.types});
  } catch (const TypeError& error) {
    std::vector<std::string> notes{"rule " + std::to_string(error.rule) + " of docs/program.md"};
    if (!origin_->scope.empty()) notes.push_back("in " + origin_->scope);
    throw Error(ExitStatus::usage, Diagnostic{"program", origin_->place, error.what(), error.help, std::move(notes)});
  }
  Equation equation{op, std::move(operands), {}, origin_, std::move(regions)};
  equation.results.reserve(result_types.size());
  for (Type& type : result_types) equation.results.push_back(new_value(std::move(type)));
  current_->push_back(std::move(equation));
  return current_->back().results;
}

Value Builder::constant(DType dtype, double value, Shape shape) {
  return emit(ops_.constant(dtype, std::move(shape), value), {});
}

Value Builder::vary(Value value, AxisSet axes) {
  const AxisSet missing = axes - program_.type(value).varying;
  if (missing.empty()) return value;
  return append(ops_.pvary(missing), {value}, {}).front();
}

}  // namespace pmaptrain
