#include "core/train/comparisons.h"

#include <algorithm>
#include <optional>

#include "core/setup/initialize.h"
#include "core/setup/values.h"

namespace pmaptrain::train {
namespace {

const model::Parameter* find_parameter(const model::Model& model, const std::string& name) {
  const auto found = std::find_if(model.parameters.begin(), model.parameters.end(),
                                  [&](const model::Parameter& p) { return p.name == name; });
  return found != model.parameters.end() ? &*found : nullptr;
}

// The true parameters that the source knows for this model. The source made its targets by one dense layer on its
// features, so it knows none for models that compute anything else.
std::vector<data::Truth> known_truths(const model::Model& model, const data::Source& source) {
  const std::vector<const model::Node*> layers = model.nodes();
  if (layers.size() != 1 || layers.front()->kind != "dense" || model.normalize) return {};
  std::vector<data::Truth> truths;
  for (const data::Truth& truth : source.truths) {
    const model::Parameter* const found = find_parameter(model, truth.parameter);
    if (found == nullptr) continue;  // a layer with another name, or without a bias
    if (numel(found->shape) != static_cast<std::int64_t>(truth.values.size())) return {};
    truths.push_back(truth);
  }
  return truths;
}

}  // namespace

std::vector<run::Comparison> initial_comparisons(const setup::Setup& setup, std::int64_t member) {
  const spec::Spec& spec = setup.member_spec(member);
  std::vector<run::Comparison> comparisons;
  std::optional<setup::InitialValues> values;  // opened only if there is something to compare
  const auto initial = [&](const std::string& name) {
    if (!values) {
      values.emplace(setup.model, spec.model, spec.seed, setup.membership(member), setup.initial_file.get());
    }
    return setup::to_doubles(values->of(*find_parameter(setup.model, name)), setup.model.dtype);
  };
  for (const auto& [name, tensor] : spec.model.initial_values) {
    run::Comparison& comparison = comparisons.emplace_back();
    comparison.parameter = name;
    comparison.initial = initial(name);
  }
  for (const data::Truth& truth : known_truths(setup.model, setup.source)) {
    const auto known = std::find_if(comparisons.begin(), comparisons.end(),
                                    [&](const run::Comparison& c) { return c.parameter == truth.parameter; });
    run::Comparison& comparison = known != comparisons.end() ? *known : comparisons.emplace_back();
    comparison.parameter = truth.parameter;
    comparison.initial = initial(truth.parameter);
    comparison.truth = truth.values;
  }
  return comparisons;
}

void add_current_values(std::vector<run::Comparison>& comparisons, Module& module, std::int64_t member) {
  for (run::Comparison& comparison : comparisons) {
    comparison.learned = setup::to_doubles(module, module.input(comparison.parameter), {module.own_device(), member});
  }
}

}  // namespace pmaptrain::train
