// The names of alternatives: the keys of their rows.
#include <algorithm>

#include "core/base/text.h"
#include "core/spec/rows/sections.h"
#include "core/spec/spec.h"
#include "core/spec/types/takes.h"

namespace pmaptrain::spec {
namespace {

template <class... Kinds>
std::vector<std::string> metrics_of(Mode mode, Tag<std::variant<Kinds...>>) {
  std::vector<std::string> names;
  const auto add = [&]<class Kind>(const Kind& kind) {
    if (Kind::better == mode) names.push_back(Choice<MetricKind>::name(kind));
  };
  (add(Kinds{}), ...);
  return names;
}

// The names that the measures of metrics to maximize contain, as top_5_accuracy contains accuracy.
const std::vector<std::string>& parts_to_maximize() {
  static const std::vector<std::string> parts = [] {
    const std::vector<std::string> names = metrics_of(Mode::max, Tag<MetricKind>{});
    std::vector<std::string> shortest;
    for (const std::string& name : names) {
      const bool has_part = std::any_of(names.begin(), names.end(), [&](const std::string& other) {
        return other != name && name.find(other) != std::string::npos;
      });
      if (!has_part) shortest.push_back(name);
    }
    return shortest;
  }();
  return parts;
}

bool has_any(const std::string& name, const std::vector<std::string>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const std::string& part) { return name.find(part) != std::string::npos; });
}

}  // namespace

std::string to_string(const Source& source) { return Choice<Source>::name(source); }
std::string to_string(const Loss& loss) { return Choice<Loss>::name(loss); }
std::string to_string(const LayerKind& kind) { return Choice<LayerKind>::name(kind); }
std::string to_string(const AugmentationKind& kind) { return Choice<AugmentationKind>::name(kind); }
std::string to_string(const Schedule& schedule) { return Choice<Schedule>::name(schedule); }

std::string to_string(const Metric& metric) {
  if (const auto* top = std::get_if<metric::TopKAccuracy>(&metric.kind)) {
    return "top_" + std::to_string(top->k) + "_accuracy";
  }
  std::string name = Choice<MetricKind>::name(metric.kind);
  const bool is_usual = std::visit(
      []<class Kind>(const Kind& kind) {
        if constexpr (requires { kind.average; }) return kind.average == Kind::usual;
        return true;
      },
      metric.kind);
  if (is_usual) return name;
  switch (*average_of(metric)) {
    case metric::Average::macro: return name + "_macro";
    case metric::Average::micro: return name + "_micro";
    case metric::Average::weighted: return name + "_weighted";
    case metric::Average::samples: return name + "_samples";
    case metric::Average::none: break;  // one value for each class
  }
  return name;
}

Mode mode_of(const std::string& metric) { return has_any(metric, parts_to_maximize()) ? Mode::max : Mode::min; }

std::optional<Mode> better_values(const std::string& measure) {
  if (has_any(measure, parts_to_maximize())) return Mode::max;
  const bool is_known = measure == "loss" || has_any(measure, metrics_of(Mode::min, Tag<MetricKind>{}));
  return is_known ? std::optional(Mode::min) : std::nullopt;
}

std::string_view default_mode_text() {
  static const std::string text = [] {
    std::vector<std::string> names = parts_to_maximize();
    const std::string last = names.back();
    names.pop_back();
    return "max for " + join(names, ", ") + " and " + last + ", else min";
  }();
  return text;
}

}  // namespace pmaptrain::spec
