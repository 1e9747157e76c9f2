// The names of alternatives: the keys of their rows.
#include "core/spec/rows/sections.h"
#include "core/spec/spec.h"

namespace pmaptrain::spec {

std::string to_string(const Source& source) { return Choice<Source>::name(source); }
std::string to_string(const Loss& loss) { return Choice<Loss>::name(loss); }
std::string to_string(const LayerKind& kind) { return Choice<LayerKind>::name(kind); }
std::string to_string(const AugmentationKind& kind) { return Choice<AugmentationKind>::name(kind); }
std::string to_string(const OptimizerRule& rule) { return Choice<OptimizerRule>::name(rule); }
std::string to_string(const Schedule& schedule) { return Choice<Schedule>::name(schedule); }

std::string to_string(const Metric& metric) {
  if (const auto* top = std::get_if<metric::TopKAccuracy>(&metric.kind)) {
    return "top_" + std::to_string(top->k) + "_accuracy";
  }
  return Choice<MetricKind>::name(metric.kind);
}

}  // namespace pmaptrain::spec
