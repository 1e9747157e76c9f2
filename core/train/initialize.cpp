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
std::vector<std::byte> convert(const spec::ModelSpec& spec, const std::string& name, const Tensor& tensor,
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

// The file's tensors; errors stand where the config names it.
Tensors read_tensors(const spec::ModelSpec& spec) {
  try {
    return read_safetensors(*spec.initial_file);
  } catch (const Error& error) {
    data::throw_at(spec.init_place, error);
  }
}

void read_file(const model::Model& model, const spec::ModelSpec& spec,
               std::map<std::string, std::vector<std::byte>>& values) {
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
  for (const auto& [name, tensor] : read_tensors(spec)) {
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
    values[name] = convert(spec, name, tensor, model.dtype);
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

void check_initial_file(const model::Model& model, const spec::ModelSpec& spec) {
  std::map<std::string, std::vector<std::byte>> values;
  if (spec.initial_file) read_file(model, spec, values);
}

std::map<std::string, std::vector<std::byte>> initial_parameters(const model::Model& model, const spec::ModelSpec& spec,
                                                                 std::uint64_t seed) {
  std::map<std::string, std::vector<std::byte>> values;
  for (const model::Parameter& parameter : model.parameters)
    values[parameter.name] = draw(parameter, seed, model.dtype);
  if (spec.initial_file) read_file(model, spec, values);
  // make_model has checked names and shapes.
  for (const auto& [name, tensor] : spec.initial_values) {
    values[name] = fill(numel(tensor.shape), model.dtype, [&from = tensor.values](std::size_t i) { return from[i]; });
  }
  return values;
}

}  // namespace pmaptrain::train
