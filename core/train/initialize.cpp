#include "core/train/initialize.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "core/base/philox.h"
#include "core/base/text.h"
#include "core/data/array.h"
#include "core/train/safetensors.h"

namespace pmaptrain::train {
namespace {

// The standard deviation of a standard normal cut at two.
constexpr double cut_deviation = 0.87962566103423978;

// A standard normal cut at two, for element `index` of a stream: the first of the element's own sequence of normals
// that lies inside (95 % do), so no element's value depends on how often another was drawn again.
double truncated_normal(PhiloxKey key, std::uint64_t index) {
  for (std::uint32_t attempt = 0;; ++attempt) {
    const auto words =
        philox4x32(key, {attempt, 0, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32)});
    for (std::size_t pair = 0; pair < 4; pair += 2) {
      for (double normal : normal_pair(words[pair], words[pair + 1])) {
        if (std::abs(normal) <= 2.0) return normal;
      }
    }
  }
}

template <class Get>
std::vector<std::byte> fill(std::int64_t elements, DType dtype, Get get) {
  const auto count = static_cast<std::size_t>(elements);
  std::vector<std::byte> bytes(count * size_of(dtype));
  dispatch_floating(dtype, [&]<class T>() {
    for (std::size_t i = 0; i < count; ++i) {
      const T value = static_cast<T>(get(i));
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
  return bytes;
}

[[noreturn]] void refuse(const spec::ModelSpec& spec, std::string message, std::string help) {
  throw Error(ExitStatus::data,
              Diagnostic{"data", spec.init_place, *spec.initial_file + " " + std::move(message), std::move(help), {}});
}

// A file's tensor as the parameter's values, which must be finite there.
std::vector<std::byte> convert(const spec::ModelSpec& spec, const std::string& name, const TensorView& tensor,
                               DType dtype) {
  return dispatch_floating(tensor.dtype, [&]<class T>() {
    return fill(numel(tensor.shape), dtype, [&](std::size_t i) {
      T value;
      std::memcpy(&value, tensor.bytes.data() + i * sizeof(T), sizeof(T));
      const bool fits = dtype != DType::f32 || std::isfinite(static_cast<float>(value));
      if (std::isfinite(value) && fits) return value;
      const Shape index = data::index_of(static_cast<std::int64_t>(i), tensor.shape);
      refuse(spec,
             "has " + exact(value) + " in '" + name + "' at " + to_string(index) +
                 (std::isfinite(value) ? ", which float32 cannot hold" : ", where a run cannot begin"),
             "give every parameter finite numbers of at most about 3.4e38");
    });
  });
}

// Whether the file's tensors are the model's parameters, in their shapes.
void check_tensors(const model::Model& model, const spec::ModelSpec& spec, const std::vector<TensorView>& tensors) {
  std::map<std::string, const model::Parameter*> parameters;
  std::vector<std::string> names;
  for (const model::Parameter& parameter : model.parameters) {
    parameters[parameter.name] = &parameter;
    names.push_back(parameter.name);
  }
  const auto shown = [](DType dtype, const Shape& shape) {
    std::string text(to_string(dtype));
    text += to_string(shape);
    return text;
  };
  for (const TensorView& tensor : tensors) {
    const std::string& name = tensor.name;
    const std::string found = shown(tensor.dtype, tensor.shape);
    const auto entry = parameters.find(name);
    if (entry == parameters.end()) {
      const std::string near = nearest(name, names);
      refuse(spec, fmt::format("has a tensor '{}' {}, which is no parameter of this model", name, found),
             near.empty() ? "its parameters are " + join(names, ", ")
                          : fmt::format("the nearest parameter is '{}'", near));
    }
    const Shape& shape = entry->second->shape;
    if (tensor.shape != shape || !is_floating(tensor.dtype)) {
      refuse(spec, fmt::format("has '{}' as {}; the parameter is {}", name, found, shown(model.dtype, shape)),
             "change the layer's sizes, or write the tensor in this shape");
    }
    parameters.erase(entry);
  }
  if (parameters.empty()) return;
  std::vector<std::string> missing;
  missing.reserve(parameters.size());
  for (const auto& [name, parameter] : parameters) {
    missing.push_back("'" + name + "' " + shown(model.dtype, parameter->shape));
  }
  refuse(spec,
         "lacks " + join(missing, ", ") + (missing.size() == 1 ? ", a parameter" : ", parameters") + " of this model",
         "write every parameter; model.init.values may give some, and the others are drawn");
}

}  // namespace

std::vector<std::byte> draw(const model::Parameter& parameter, std::uint64_t seed, DType dtype) {
  if (parameter.initializer.kind == model::InitializerKind::zeros) {
    return fill(numel(parameter.shape), dtype, [](std::size_t) { return 0.0; });
  }
  const PhiloxKey key = stream_key(seed, "init/" + parameter.name);
  const double scale = std::sqrt(1.0 / static_cast<double>(parameter.initializer.fan_in)) / cut_deviation;
  return fill(numel(parameter.shape), dtype, [&](std::size_t i) { return scale * truncated_normal(key, i); });
}

InitialValues::InitialValues(const model::Model& model, const spec::ModelSpec& spec, std::uint64_t seed)
    : model_(model), spec_(spec), seed_(seed) {
  if (!spec.initial_file) return;
  std::vector<TensorView> tensors;
  try {
    file_ = data::map_file(*spec.initial_file);
    tensors = view_safetensors(file_, *spec.initial_file);
    file_.check_intact();
  } catch (const Error& error) {
    data::throw_at(spec.init_place, error);
  }
  check_tensors(model, spec, tensors);
  for (TensorView& tensor : tensors) {
    std::string name = tensor.name;
    in_file_.emplace(std::move(name), std::move(tensor));
  }
}

std::vector<std::byte> InitialValues::of(const model::Parameter& parameter) const {
  // make_model has checked names and shapes.
  if (const auto given = spec_.initial_values.find(parameter.name); given != spec_.initial_values.end()) {
    const auto& tensor = given->second;
    return fill(numel(tensor.shape), model_.dtype, [&](std::size_t i) { return tensor.values[i]; });
  }
  const auto found = in_file_.find(parameter.name);
  if (found == in_file_.end()) return draw(parameter, seed_, model_.dtype);
  std::vector<std::byte> values = convert(spec_, parameter.name, found->second, model_.dtype);
  try {
    file_.check_intact();
  } catch (const Error& error) {
    data::throw_at(spec_.init_place, error);
  }
  return values;
}

void check_initial_file(const model::Model& model, const spec::ModelSpec& spec) {
  if (!spec.initial_file) return;
  const InitialValues values(model, spec, 0);
  for (const model::Parameter& parameter : model.parameters) values.of(parameter);
}

}  // namespace pmaptrain::train
