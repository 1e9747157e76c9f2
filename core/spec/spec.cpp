#include "core/spec/spec.h"

#include "core/spec/sections.h"

namespace pmaptrain::spec {

Npz::Split Npz::complete(const Split& split) const {
  if (file) return {*file, split.inputs, split.targets};
  return {split.file, inputs.value_or(""), targets.value_or("")};
}

std::string to_string(const Loss& loss) { return Choice<Loss>::name(loss); }
std::string to_string(const LayerKind& kind) { return Choice<LayerKind>::name(kind); }
std::string to_string(const OptimizerRule& rule) { return Choice<OptimizerRule>::name(rule); }

std::string to_string(const Metric& metric) {
  if (const auto* top = std::get_if<metric::TopKAccuracy>(&metric.kind)) {
    return "top_" + std::to_string(top->k) + "_accuracy";
  }
  return Choice<MetricKind>::name(metric.kind);
}

bool is_per_class(const Metric& metric) {
  return std::visit(
      []<class Kind>(const Kind& kind) {
        if constexpr (requires { kind.average; }) return kind.average == metric::Average::none;
        return false;
      },
      metric.kind);
}

}  // namespace pmaptrain::spec
