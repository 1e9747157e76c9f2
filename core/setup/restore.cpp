#include "core/setup/restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/setup/plan.h"

namespace pmaptrain::setup {

namespace {

// Files of parameters have the model's statistics beside them.
bool is_in(Group group, const Variable& variable) {
  return group == Group::params ? is_trained(variable.group) : variable.group == group;
}

// Whether it is the average of a parameter that has none here. Older versions averaged frozen parameters too.
bool is_average_of_frozen(std::string_view tensor, std::span<const Variable> variables) {
  constexpr std::string_view prefix = "ema/";
  if (!tensor.starts_with(prefix)) return false;
  tensor.remove_prefix(prefix.size());
  return std::any_of(variables.begin(), variables.end(), [&](const Variable& variable) {
    return variable.group == Group::params && variable.name == tensor;
  });
}

}  // namespace

void write_group(Module& module, std::int64_t member, std::size_t entry, Group group,
                 std::span<const run::TensorView> tensors, const std::string& file, const step::StepRoles* roles) {
  std::map<std::string_view, const Variable*> taken;
  for (const Variable& variable : module.variables(entry)) {
    if (is_in(group, variable)) taken[variable.name] = &variable;
  }
  std::map<std::string_view, const run::TensorView*> given;
  for (const run::TensorView& tensor : tensors) given[tensor.name] = &tensor;
  for (const auto& [name, tensor] : given) {
    if (taken.contains(name) || is_average_of_frozen(name, module.variables(entry))) continue;
    fail_data("'" + file + "' has a tensor '" + std::string(name) + "', which this model does not have",
              "it is of another model or optimizer");
  }
  for (std::size_t i = 0; i < module.variables(entry).size(); ++i) {
    const Variable& input = module.variables(entry)[i];
    if (!is_in(group, input) || (roles != nullptr && roles->is_of_guard(i))) continue;
    const std::string name(input.name);
    const auto found = given.find(name);
    if (found == given.end()) {
      fail_data(fmt::format("'{}' has no tensor '{}'", file, name), "it is of another model or optimizer");
    }
    const Type& type = input.type;
    const run::TensorView& tensor = *found->second;
    if (tensor.dtype != type.dtype || tensor.shape != type.shape) {
      fail_data(fmt::format("'{}': '{}' is {}{}; the model needs {}{}", file, name, to_string(tensor.dtype),
                            to_string(tensor.shape), to_string(type.dtype), to_string(type.shape)),
                "it is of another model or optimizer");
    }
    module.wait(module.write(module.input(name), {every_device, member}, tensor.bytes));
  }
}

void restore(Module& module, const Setup& setup, const run::Checkpoint& checkpoint, std::int64_t member) {
  const auto& [folder, state, parameters, optimizer] = checkpoint;
  write_group(module, member, train_entry, Group::params, parameters.of_member(member), parameters.path);
  write_group(module, member, train_entry, Group::state, optimizer.of_member(member), optimizer.path, &setup.roles);
  parameters.file.check_intact();
  optimizer.file.check_intact();
}

}  // namespace pmaptrain::setup
