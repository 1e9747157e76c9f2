#include "core/spec/spec.h"

#include "core/spec/sections.h"

namespace pmaptrain::spec {

Npz::Split Npz::complete(const Split& split) const {
  if (file) return {*file, split.inputs, split.targets};
  return {split.file, inputs.value_or(""), targets.value_or("")};
}

Missing MissingCells::of(std::string_view column, bool categorical) const {
  for (const auto& [name, treatment] : columns) {
    if (name.text == column) return treatment;
  }
  return categorical ? texts : numbers;
}

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

bool takes_numbers(const Loss& loss) {
  return std::holds_alternative<MeanSquaredError>(loss) || std::holds_alternative<MeanAbsoluteError>(loss) ||
         std::holds_alternative<Huber>(loss);
}

bool balances_classes(const Loss& loss) {
  return std::visit(
      [](const auto& alternative) {
        if constexpr (requires { alternative.class_weights; }) return alternative.class_weights.balanced;
        return false;
      },
      loss);
}

bool is_time(const Duration& duration) {
  return duration.unit == Unit::seconds || duration.unit == Unit::minutes || duration.unit == Unit::hours;
}

double seconds_of(const Duration& duration) {
  const double count = static_cast<double>(duration.count);
  return duration.unit == Unit::hours ? count * 3600 : duration.unit == Unit::minutes ? count * 60 : count;
}

std::string to_string(PrecisionPolicy precision) {
  return precision == PrecisionPolicy::mixed_bfloat16 ? "mixed_bfloat16" : "float32";
}
std::string to_string(Mode mode) { return mode == Mode::max ? "max" : "min"; }

Mode mode_of(const std::string& metric) {
  for (const char* const larger : {"accuracy", "precision", "recall", "f1", "r2", "roc_auc"}) {
    if (metric.find(larger) != std::string::npos) return Mode::max;
  }
  return Mode::min;
}

std::int64_t members(const Spec& spec) { return spec.ensemble ? std::ssize(spec.ensemble->alone) : 1; }

const Spec& member_spec(const Spec& spec, std::int64_t member) {
  return spec.ensemble ? spec.ensemble->alone.at(static_cast<std::size_t>(member)) : spec;
}

Mesh member_mesh(const Spec& spec) {
  std::vector<Axis> axes = spec.mesh.mesh.axes();
  if (!spec.ensemble) return Mesh(axes);
  std::erase_if(axes, [&](const Axis& axis) { return axis.name == spec.ensemble->axis; });
  if (axes.empty()) axes.push_back({"devices", 1});
  return Mesh(axes);
}

bool is_single_value(const Metric& metric) {
  return !is_per_class(metric) && !std::holds_alternative<metric::ConfusionMatrix>(metric.kind);
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
