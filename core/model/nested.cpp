// Lists of layers, and nested lists.
#include <set>
#include <type_traits>

#include "core/model/layers.h"

namespace pmaptrain::model {
namespace {

// A layer with the rule by which it is exported; a list has those of its layers.
template <class Kind>
std::optional<PlannedLayer> plan_with_rules(const Kind& kind, const LayerInput& in) {
  static_assert(
      requires { plan(kind, in); }, "this layer has no plan() in core/model/layers.h");
  std::optional<PlannedLayer> planned = plan(kind, in);
  if constexpr (!std::is_same_v<Kind, spec::Layers>) {
    if (planned) {
      planned->to_onnx = [kind](const OnnxCall& call, const onnx::Value& x) { return to_onnx(kind, call, x); };
    }
  }
  return planned;
}

}  // namespace

bool plan_list(const std::vector<spec::Layer>& list, const std::string& prefix, Precision precision, Activation& at,
               std::vector<PlannedLayer>& out, std::vector<Diagnostic>& errors) {
  std::set<std::string> names;
  for (const spec::Layer& layer : list) {
    if (!names.insert(layer.name).second) {
      errors.push_back({"config",
                        layer.place,
                        "two layers are named '" + layer.name + "'",
                        "give one of them another name: {name: ..., " + spec::to_string(layer.kind) + ": ...}",
                        {}});
    }
    Precision own = precision;
    if (layer.precision == spec::PrecisionPolicy::float32) own.compute = own.storage;
    const LayerInput in{layer, prefix + layer.name, at.shape, own, at.dtype, errors, at.image};
    std::optional<PlannedLayer> planned =
        std::visit([&](const auto& kind) { return plan_with_rules(kind, in); }, layer.kind);
    if (!planned) return false;
    at = {planned->compute, planned->output, planned->image};
    out.push_back(std::move(*planned));
  }
  return true;
}

std::optional<PlannedLayer> plan(const spec::Layers& layers, const LayerInput& in) {
  PlannedLayer nested = in.start();
  Activation at{in.input_dtype, in.shape, in.image};
  if (!plan_list(layers.layers, in.name + ".", in.precision, at, nested.layers, in.errors)) return std::nullopt;
  nested.compute = at.dtype;
  nested.output = at.shape;
  nested.image = at.image;
  return nested;
}

}  // namespace pmaptrain::model
