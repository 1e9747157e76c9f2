#include "core/report/variables.h"

#include <vector>

#include "core/base/text.h"
#include "core/base/wrap.h"

namespace pmaptrain::report {

std::string variables_text(const Program& program, int width) {
  std::vector<std::vector<std::string>> rows{{"", "name", "first", "type", "bytes"}};
  const auto add = [&](const std::string& group, const std::string& name, const std::string& first, const Type& type) {
    rows.push_back(
        {group, name, first, std::string(to_string(type.dtype)) + to_string(type.shape), human_bytes(bytes(type))});
  };
  for (const Input& input : program.inputs) {
    if (!is_kept(input.group)) continue;
    const Type& type = program.type(input.value);
    add(std::string(to_string(input.group)), input.name, "", type);
    const std::vector<std::int64_t> offsets = offsets_of(input.parts, program.mesh);
    for (std::size_t i = 0; i < input.parts.size(); ++i) {
      const Part& part = input.parts[i];
      add("", "  " + part.name, std::to_string(offsets[i]),
          {type.dtype, local_shape(part.layout, program.mesh), type.varying});
    }
  }
  return "kept from step to step; a part of a bucket begins at its first element:\n" +
         in_columns(rows, {false, false, true, false, true}, width);
}

}  // namespace pmaptrain::report
