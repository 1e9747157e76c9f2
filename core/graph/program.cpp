#include "core/graph/program.h"

#include <algorithm>

#include "core/graph/bucket.h"

namespace pmaptrain {

Program::Program() = default;
Program::Program(const Program&) = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(const Program&) = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

std::string_view to_string(Group group) {
  switch (group) {
    case Group::params: return "params";
    case Group::params_state: return "params_state";
    case Group::state: return "state";
    case Group::batch: return "batch";
    case Group::hyper: return "hyper";
    case Group::data: break;
  }
  return "data";
}

const Input* Program::find_input(std::string_view input_name) const {
  for (const Input& input : inputs) {
    if (input.name == input_name) return &input;
  }
  return nullptr;
}

const Output* Program::find_output(std::string_view output_name) const {
  for (const Output& output : outputs) {
    if (output.name == output_name) return &output;
  }
  return nullptr;
}

namespace {

void shrink(std::vector<Equation>& equations) {
  equations.shrink_to_fit();
  for (Equation& equation : equations) {
    for (Region& region : equation.regions) shrink(region.equations);
  }
}

constexpr std::size_t block = 16;         // what the heap keeps beside each allocation
constexpr std::size_t of_op = 4 * block;  // an op's attributes

template <class T>
std::size_t bytes_in(const std::vector<T>& list) {
  return list.capacity() == 0 ? 0 : block + list.capacity() * sizeof(T);
}

std::size_t bytes_of(const std::vector<Equation>& equations) {
  std::size_t bytes = bytes_in(equations);
  for (const Equation& equation : equations) {
    bytes += of_op + bytes_in(equation.operands) + bytes_in(equation.results) + bytes_in(equation.regions);
    for (const Region& region : equation.regions) {
      bytes += bytes_in(region.params) + bytes_of(region.equations) + bytes_in(region.results);
    }
  }
  return bytes;
}

}  // namespace

std::size_t bytes_of(const Program& program) {
  std::size_t bytes = bytes_in(program.types) + bytes_in(program.inputs) + bytes_of(program.equations);
  for (const Type& type : program.types) bytes += bytes_in(type.shape);
  for (const Input& input : program.inputs) bytes += bytes_in(input.parts);
  return bytes;
}

void shrink(Program& program) {
  program.types.shrink_to_fit();
  program.inputs.shrink_to_fit();
  shrink(program.equations);
}

std::vector<Variable> variables_of(const Program& program) {
  std::vector<Variable> variables;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const Input& input = program.inputs[i];
    const Type& type = program.type(input.value);
    if (input.parts.empty()) variables.push_back({input.name, input.group, type, i, 0});
    const std::vector<std::int64_t> offsets = offsets_of(input.parts);
    for (std::size_t k = 0; k < input.parts.size(); ++k) {
      const Part& part = input.parts[k];
      variables.push_back({part.name,
                           input.group,
                           {type.dtype, part.shape, type.varying - input.sharded},
                           i,
                           static_cast<std::size_t>(offsets[k]) * size_of(type.dtype)});
    }
  }
  return variables;
}

std::vector<std::int64_t> offsets_of(std::span<const Part> parts) {
  std::vector<Shape> shapes;
  shapes.reserve(parts.size());
  for (const Part& part : parts) shapes.push_back(part.shape);
  return offsets_in_bucket(shapes);
}

std::vector<Type> types_of(const Program& program, std::span<const Value> values) {
  std::vector<Type> types;
  types.reserve(values.size());
  for (Value value : values) types.push_back(program.type(value));
  return types;
}

bool communicates(const Equation& equation) {
  const Communication how = equation.op.rules().communication;
  if (reads_other_devices(how) || how == Communication::slice) return true;
  return std::any_of(equation.regions.begin(), equation.regions.end(), [](const Region& region) {
    return std::any_of(region.equations.begin(), region.equations.end(), communicates);
  });
}

}  // namespace pmaptrain
