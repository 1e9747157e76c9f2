#include "core/spec/spec.h"

#include <algorithm>

#include "core/base/text.h"

namespace pmaptrain::spec {

Spec::Spec() = default;
Spec::Spec(const Spec&) = default;
Spec::Spec(Spec&&) noexcept = default;
Spec& Spec::operator=(const Spec&) = default;
Spec& Spec::operator=(Spec&&) noexcept = default;
Spec::~Spec() = default;

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

std::vector<TargetScale> target_scales(const DataSpec& data, std::int64_t outputs) {
  const NormalizeTargets given = data.normalize_targets.value_or(NormalizeTargets());
  std::vector<TargetScale> scales(static_cast<std::size_t>(outputs), given.others);
  const auto* const csv = std::get_if<Csv>(&data.source);
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < outputs; ++i) {
    const bool is_named = csv != nullptr && i < std::ssize(csv->target);
    names.push_back(is_named ? csv->target[static_cast<std::size_t>(i)].text : std::to_string(i));
  }
  for (const auto& [name, scale] : given.outputs) {
    const auto at = std::find(names.begin(), names.end(), name.text);
    if (at == names.end()) {
      throw Error(ExitStatus::usage, Diagnostic{"config",
                                                name.place,
                                                "normalize_targets names '" + name.text + "', which is no output",
                                                "the outputs are " + join(names, ", "),
                                                {}});
    }
    scales[static_cast<std::size_t>(at - names.begin())] = scale;
  }
  return scales;
}

bool has_own_validation(const Source& source) {
  return std::visit(
      [](const auto& s) {
        if constexpr (requires { s.validation.has_value(); }) return s.validation.has_value();
        return false;
      },
      source);
}

bool has_own_test(const Source& source) {
  return std::visit(
      []<class T>(const T& s) {
        if constexpr (requires { s.test.has_value(); }) {
          return s.test.has_value();
        } else if constexpr (requires { s.test > 0; }) {
          return s.test > 0;
        } else {
          return T::has_test;
        }
      },
      source);
}

bool skips_errors(const Source& source) {
  return std::visit(
      [](const auto& s) {
        if constexpr (requires { s.on_error; }) return s.on_error == OnError::skip;
        return false;
      },
      source);
}

bool has_weights(const Source& source) {
  const auto* const csv = std::get_if<Csv>(&source);
  return csv != nullptr && csv->weight.has_value();
}

Outputs outputs_of(const Loss& loss) {
  return std::visit([]<class T>(const T&) { return T::outputs; }, loss);
}

bool balances_classes(const Loss& loss) {
  return std::visit(
      [](const auto& alternative) {
        if constexpr (requires { alternative.class_weights; }) return alternative.class_weights.balanced;
        return false;
      },
      loss);
}

bool balances_positives(const Loss& loss) {
  const auto* const entropy = std::get_if<SigmoidCrossEntropy>(&loss);
  return entropy != nullptr && entropy->positive_weights.balanced;
}

std::optional<std::int64_t> ignored_label(const Loss& loss) {
  const auto* const entropy = std::get_if<SoftmaxCrossEntropy>(&loss);
  return entropy != nullptr ? entropy->ignore_label : std::nullopt;
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

std::int64_t members(const Spec& spec) { return spec.ensemble ? std::ssize(spec.ensemble->alone) : 1; }

const Spec& member_spec(const Spec& spec, std::int64_t member) {
  return spec.ensemble ? spec.ensemble->alone.at(static_cast<std::size_t>(member)) : spec;
}

Mesh data_mesh(const MeshSpec& mesh) { return mesh.mesh.only(mesh.roles.data); }

Mesh member_mesh(const Spec& spec) {
  const Mesh mesh = spec.mesh.mesh.only(spec.mesh.mesh.all() - spec.mesh.roles.ensemble);
  return mesh.axes().empty() ? Mesh({{"devices", 1}}) : mesh;
}

bool is_single_value(const Metric& metric) {
  const bool is_number = std::visit([]<class Kind>(const Kind&) { return Kind::better.has_value(); }, metric.kind);
  return is_number && !is_per_class(metric);
}

bool is_per_class(const Metric& metric) { return average_of(metric) == metric::Average::none; }

std::optional<metric::Average> average_of(const Metric& metric) {
  return std::visit(
      []<class Kind>(const Kind& kind) -> std::optional<metric::Average> {
        if constexpr (requires { kind.average; }) return kind.average;
        return std::nullopt;
      },
      metric.kind);
}

double threshold_of(const Metric& metric) {
  return std::visit(
      []<class Kind>(const Kind& kind) {
        if constexpr (requires { kind.threshold; }) return kind.threshold;
        return 0.5;
      },
      metric.kind);
}

}  // namespace pmaptrain::spec
