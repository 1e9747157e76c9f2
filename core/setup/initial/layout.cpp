#include "core/setup/initial/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/model/layout.h"
#include "core/run/files/safetensors_metadata.h"

namespace pmaptrain::setup {
namespace {

using model::ParameterLayout;

std::string field_of(const std::string& name) { return name.substr(name.rfind('.') + 1); }

// A kernel that has one shape in both layouts, and its elements in two orders. Null if there is none, or if another
// kernel has two shapes, which tell the layout.
const TakenParameter* square_kernel(const std::vector<TakenParameter>& taken) {
  const TakenParameter* square = nullptr;
  for (const TakenParameter& one : taken) {
    const model::StoredParameter torch = model::stored(*one.parameter, ParameterLayout::torch);
    if (!torch.is_reordered() || numel(one.parameter->shape) == 1) continue;
    if (torch.shape != one.parameter->shape) return nullptr;
    if (square == nullptr) square = &one;
  }
  return square;
}

// The layout of a file, and what tells it.
struct LayoutTold {
  ParameterLayout layout = ParameterLayout::flax;
  std::string by;
};

std::optional<LayoutTold> layout_told(const TakenParameter& kernel, const std::string& format) {
  if (format == "pt" || format == "flax") {
    return LayoutTold{format == "pt" ? ParameterLayout::torch : ParameterLayout::flax,
                      fmt::format("its metadata tell (format: {})", format)};
  }
  const model::Parameter& parameter = *kernel.parameter;
  const std::string field = field_of(kernel.in_file);
  if (field != parameter.torch.field && field != field_of(parameter.name)) return std::nullopt;
  return LayoutTold{field == parameter.torch.field ? ParameterLayout::torch : ParameterLayout::flax,
                    fmt::format("the name '{}' tells", kernel.in_file)};
}

}  // namespace

std::optional<OtherLayout> other_layout(const std::vector<TakenParameter>& taken, const spec::InitialFrom& from,
                                        const run::CheckpointFile& file) {
  // The names of one kind of model tell the layout themselves.
  const bool is_told = from.transpose || model::has_other_names(from.layout);
  const TakenParameter* const square = is_told ? nullptr : square_kernel(taken);
  if (square == nullptr) return std::nullopt;
  const auto told = layout_told(*square, run::safetensors_metadata(file.file, file.path)["format"]);
  if (!told || told->layout == from.layout) return std::nullopt;
  const std::string kernel = fmt::format("'{}' {}", square->parameter->name, to_string(square->parameter->shape));
  if (from.layout == ParameterLayout::torch) {
    return OtherLayout{
        fmt::format("is in the layout of Flax, as {}; layout: torch would transpose {}", told->by, kernel),
        "layout: flax reads it as it is; if kernels are transposed in it, init.from.transpose lists them"};
  }
  return OtherLayout{
      fmt::format("is in the layout of PyTorch, as {}; layout: flax would take {} without transposing it", told->by,
                  kernel),
      "layout: torch transposes kernels; if none is transposed in the file, init: {from: {path: ..., transpose: []}} "
      "says so"};
}

std::string names_of_torch_help(const std::vector<run::TensorView>& tensors, const model::Model& model) {
  const auto is_of_torch = [](const run::TensorView& tensor) {
    return tensor.name.ends_with(".weight") || tensor.name == "weight" || tensor.name.ends_with(".running_mean") ||
           tensor.name.find("weight_ih_l") != std::string::npos;
  };
  if (std::none_of(tensors.begin(), tensors.end(), is_of_torch)) return "";
  std::vector<std::string> lacking;
  for (const model::Parameter& parameter : model.parameters) {
    const std::string name = model::stored(parameter, ParameterLayout::torch).name;
    if (std::none_of(tensors.begin(), tensors.end(),
                     [&](const run::TensorView& tensor) { return tensor.name == name; })) {
      lacking.push_back(parameter.name);
    }
  }
  std::string help = "these are names of PyTorch: layout: torch reads them, and transposes kernels";
  if (!lacking.empty()) {
    help += fmt::format("; rename: {{\"{}\": {}}} says which tensor is which parameter", tensors.front().name,
                        lacking.front());
  }
  return help;
}

}  // namespace pmaptrain::setup
