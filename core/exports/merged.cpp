#include "core/exports/merged.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "core/base/bf16.h"
#include "core/base/error.h"
#include "core/exports/arrays.h"
#include "core/setup/base.h"
#include "core/setup/options.h"

namespace pmaptrain::exports {
namespace {

using Floats = std::vector<float>;

Floats floats_of(std::span<const std::byte> bytes) {
  Floats values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

// Adds scale · a · b to the kernel as a matrix with `out` columns. Sums are double, and each element is rounded once.
void add_product(double scale, const Floats& a, const Floats& b, std::size_t out, Floats& kernel) {
  const std::size_t in = kernel.size() / out, rank = b.size() / out;
  std::vector<double> row(out);
  for (std::size_t i = 0; i < in; ++i) {
    std::fill(row.begin(), row.end(), 0.0);
    for (std::size_t k = 0; k < rank; ++k) {
      const auto factor = static_cast<double>(a[i * rank + k]);
      for (std::size_t j = 0; j < out; ++j) row[j] += factor * static_cast<double>(b[k * out + j]);
    }
    float* const into = kernel.data() + i * out;
    for (std::size_t j = 0; j < out; ++j) {
      into[j] = static_cast<float>(static_cast<double>(into[j]) + scale * row[j]);
    }
  }
}

}  // namespace

TrainedModel merged_model(const spec::Spec& spec, const run::RunState& state,
                          const std::map<std::string, run::TensorView>& tensors, const std::string& file) {
  const model::Model adapted = setup::undivided_model_of(spec, state.input, state.target, state.encoding);
  const auto own = [&](const model::Parameter& parameter) { return tensor_of(tensors, parameter, file); };
  // As programs have the base: where it is bfloat16, the rounded values.
  const auto values = std::make_shared<std::map<std::string, Floats>>();
  const auto keep = [&](const model::Parameter& parameter, std::size_t /*first*/, std::span<const std::byte> slice) {
    Floats& kept = (*values)[parameter.name];
    kept.reserve(static_cast<std::size_t>(numel(parameter.shape)));
    for (const float value : floats_of(slice)) {
      kept.push_back(parameter.stored_as == DType::bf16 ? static_cast<float>(bf16(value)) : value);
    }
  };
  setup::read_base(adapted, spec, state.base, keep);
  layers::for_each_node(adapted.layers, [&](const model::Node& node) {
    for (const model::Adapter& adapter : node.adapters) {
      const model::Parameter& kernel = node.parameters[adapter.kernel];
      add_product(adapter.scale, floats_of(own(node.parameters[adapter.a])), floats_of(own(node.parameters[adapter.b])),
                  static_cast<std::size_t>(kernel.matrix[1]), values->at(kernel.name));
    }
  });
  spec::Spec plain = spec;
  plain.lora.reset();
  TrainedModel merged{setup::undivided_model_of(plain, state.input, state.target, state.encoding), {}, values};
  for (const model::Parameter& parameter : merged.model.parameters) {
    const auto found = values->find(parameter.name);
    merged.parameters.push_back(found != values->end() ? std::as_bytes(std::span(found->second)) : own(parameter));
  }
  return merged;
}

}  // namespace pmaptrain::exports
