#include "core/train/comparisons.h"

#include <algorithm>

#include "core/train/values.h"

namespace pmaptrain::train {
namespace {

std::vector<double> parameter(Module& module, const std::string& name) { return numbers(module, module.input(name)); }

// What the source knows of this model's parameters: it made its targets by one dense layer on its features, so it
// knows nothing of a model that computes anything else.
std::vector<data::Truth> known_truths(const Setup& setup) {
  const model::Model& model = setup.model;
  const std::vector<const model::PlannedLayer*> layers = model.leaves();
  if (layers.size() != 1 || layers.front()->kind != "dense" || model.normalize) return {};
  std::vector<data::Truth> truths;
  for (const data::Truth& truth : setup.source.truths) {
    const auto found = std::find_if(model.parameters.begin(), model.parameters.end(),
                                    [&](const model::Parameter& p) { return p.name == truth.parameter; });
    if (found == model.parameters.end()) continue;  // a layer of another name, or without a bias
    if (numel(found->shape) != static_cast<std::int64_t>(truth.values.size())) return {};
    truths.push_back(truth);
  }
  return truths;
}

}  // namespace

std::vector<Comparison> initial_comparisons(const Setup& setup, Module& module) {
  std::vector<Comparison> comparisons;
  for (const auto& [name, tensor] : setup.spec().model.initial_values) {
    Comparison& comparison = comparisons.emplace_back();
    comparison.parameter = name;
    comparison.initial = parameter(module, name);
  }
  for (const data::Truth& truth : known_truths(setup)) {
    const auto known = std::find_if(comparisons.begin(), comparisons.end(),
                                    [&](const Comparison& c) { return c.parameter == truth.parameter; });
    Comparison& comparison = known != comparisons.end() ? *known : comparisons.emplace_back();
    comparison.parameter = truth.parameter;
    comparison.initial = parameter(module, truth.parameter);
    comparison.truth = truth.values;
  }
  return comparisons;
}

void add_learned(std::vector<Comparison>& comparisons, Module& module) {
  for (Comparison& comparison : comparisons) comparison.learned = parameter(module, comparison.parameter);
}

}  // namespace pmaptrain::train
