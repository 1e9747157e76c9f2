#include "core/exports/arrays.h"

#include <fmt/format.h>

#include "core/base/error.h"

namespace pmaptrain::exports {

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
