// Lists of layers, and nested lists.
#include <set>

#include "core/model/layers.h"

namespace pmaptrain::model {

bool plan_list(const std::vector<spec::Layer>& list, const std::string& prefix, Precision precision, DType& given,
               Shape& shape, std::vector<PlannedLayer>& out, std::vector<Diagnostic>& errors) {
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
    const LayerInput in{layer, prefix + layer.name, shape, own, given, errors};
    std::optional<PlannedLayer> planned = std::visit(
        [&](const auto& kind) {
          static_assert(
              requires { plan(kind, in); }, "this layer has no plan() in core/model/layers.h");
          return plan(kind, in);
        },
        layer.kind);
    if (!planned) return false;
    shape = planned->output;
    given = planned->compute;
    out.push_back(std::move(*planned));
  }
  return true;
}

std::optional<PlannedLayer> plan(const spec::Layers& layers, const LayerInput& in) {
  PlannedLayer nested = in.start();
  nested.compute = in.given;
  if (!plan_list(layers.layers, in.name + ".", in.precision, nested.compute, nested.output, nested.layers, in.errors)) {
    return std::nullopt;
  }
  return nested;
}

}  // namespace pmaptrain::model
