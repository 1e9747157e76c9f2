#include "core/setup/restore.h"

#include <map>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/setup/start.h"

namespace pmaptrain::train {

void write_group(Module& module, std::int64_t member, std::size_t entry, Group group,
                 std::span<const TensorView> tensors, const std::string& file, std::optional<std::size_t> left_out) {
  const Program& program = module.program(entry);
  std::map<std::string_view, const TensorView*> given;
  for (const TensorView& tensor : tensors) given[tensor.name] = &tensor;
  for (const auto& [name, tensor] : given) {
    const Input* const input = program.find_input(name);
    if (input != nullptr && input->group == group) continue;
    fail_data("'" + file + "' has a tensor '" + std::string(name) + "', which this model does not have",
              "it is of another model or optimizer");
  }
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const Input& input = program.inputs[i];
    if (input.group != group || i == left_out) continue;
    const auto found = given.find(input.name);
    if (found == given.end()) {
      fail_data("'" + file + "' has no tensor '" + input.name + "'", "it is of another model or optimizer");
    }
    const Type& type = program.type(input.value);
    const TensorView& tensor = *found->second;
    if (tensor.dtype != type.dtype || tensor.shape != type.shape) {
      fail_data("'" + file + "': '" + input.name + "' is " + std::string(to_string(tensor.dtype)) +
                    to_string(tensor.shape) + "; the model needs " + std::string(to_string(type.dtype)) +
                    to_string(type.shape),
                "it is of another model or optimizer");
    }
    module.wait(module.write(module.input(input.name), {every_device, member}, tensor.bytes));
  }
}

void restore(Module& module, const Setup& setup, const Checkpoint& checkpoint, std::int64_t member) {
  const auto& [folder, state, parameters, optimizer] = checkpoint;
  write_group(module, member, train_entry, Group::params, parameters.of_member(member), parameters.path);
  write_group(module, member, train_entry, Group::state, optimizer.of_member(member), optimizer.path,
              setup.roles.guard());
  parameters.file.check_intact();
  optimizer.file.check_intact();
}

}  // namespace pmaptrain::train
