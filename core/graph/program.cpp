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
    case Group::data: return "data";
    case Group::base: break;
  }
  return "base";
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
    const auto add = [&](const std::string& name, const Layout& layout, AxisSet divided, std::int64_t begin) {
      const Type logical{type.dtype, layout.logical, type.varying - divided};
      variables.push_back({name, input.group, logical, layout, divided, i, begin});
    };
    if (input.parts.empty()) add(input.name, input.layout, input.layout.axes(), 0);
    const std::vector<std::int64_t> offsets = offsets_of(input.parts, program.mesh);
    for (std::size_t k = 0; k < input.parts.size(); ++k) {
      const Part& part = input.parts[k];
      add(part.name, part.layout, input.layout.axes() | part.layout.axes(), offsets[k]);
    }
  }
  return variables;
}

std::vector<StridedCopy> copies_of(const Program& program, const Variable& variable, std::int64_t begin,
                                   std::int64_t count) {
  const Input& input = program.inputs[variable.input];
  std::vector<StridedCopy> copies = copies_of(variable.layout, program.mesh, begin, count);
  if (input.parts.empty()) return copies;
  if (input.layout.axes().empty()) {
    for (StridedCopy& copy : copies) copy.local += variable.begin;
    return copies;
  }
  // Shards end anywhere in a run. A shard and a part of an array are of different axes, so the first device that has
  // both is at the sum of their coordinates.
  CopyList of_shards;
  for (const StridedCopy& copy : copies) {
    for (std::int64_t i = 0; i < copy.times; ++i) {
      const std::int64_t at = variable.begin + copy.local + i * copy.local_stride;
      for (StridedCopy part : copies_of(input.layout, program.mesh, at, copy.run)) {
        part.device += copy.device;
        part.logical += copy.logical + i * copy.stride;
        of_shards.add(part);
      }
    }
  }
  return of_shards.take();
}

AxisSet Input::divided() const {
  AxisSet axes = layout.axes();
  for (const Part& part : parts) axes = axes | part.layout.axes();
  return axes;
}

std::vector<std::int64_t> offsets_of(std::span<const Part> parts, const Mesh& mesh) {
  std::vector<Shape> shapes;
  shapes.reserve(parts.size());
  for (const Part& part : parts) shapes.push_back(local_shape(part.layout, mesh));
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
