#include "core/exports/arrays.h"

#include <fmt/format.h>

#include "core/base/error.h"

namespace pmaptrain::exports {

std::span<const std::byte> tensor_of(const std::map<std::string, run::TensorView>& tensors,
                                     const model::Parameter& parameter, const std::string& file) {
  const auto found = tensors.find(parameter.name);
  if (found != tensors.end() && found->second.dtype == DType::f32 && found->second.shape == parameter.shape) {
    return found->second.bytes;
  }
  fail_data(fmt::format("'{}' has no tensor '{}' f32{}", file, parameter.name, to_string(parameter.shape)),
            "the config of the run describes another model");
}

void write_to_array(run::Tensors& arrays, const model::StoredParameter& stored, std::span<const std::byte> elements,
                    const std::string& parameter) {
  const auto [found, is_new] = arrays.try_emplace(stored.name);
  run::Tensor& array = found->second;
  const Shape shape = stored.array_shape();
  if (is_new) {
    array.shape = shape;
    array.bytes.resize(static_cast<std::size_t>(numel(shape)) * sizeof(float));
  } else if (array.shape != shape) {
    fail_usage(fmt::format("'{}' is a range of the array '{}', of which it needs {}, and others {}", parameter,
                           stored.name, to_string(shape), to_string(array.shape)),
               "this layout has equal ranges: kv_heads is heads there; --layout torch and flax take any model");
  }
  model::to_stored(stored, elements, sizeof(float), array.bytes);
}

}  // namespace pmaptrain::exports
