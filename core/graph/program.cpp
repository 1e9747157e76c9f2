#include "core/graph/program.h"

namespace pmaptrain {

std::string_view to_string(Group group) {
  switch (group) {
    case Group::params: return "params";
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

std::vector<Type> types_of(const Program& program, std::span<const Value> values) {
  std::vector<Type> types;
  types.reserve(values.size());
  for (Value value : values) types.push_back(program.type(value));
  return types;
}

}  // namespace pmaptrain
