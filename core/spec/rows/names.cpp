// Which values of measures are better.
#include <algorithm>

#include "core/base/text.h"
#include "core/spec/rows/sections.h"
#include "core/spec/spec.h"
#include "core/spec/types/takes.h"

namespace pmaptrain::spec {
namespace {

std::vector<std::string> metrics_of(Mode mode) {
  std::vector<std::string> names;
  for (const declare::AnyKind& kind : family(Tag<metrics::MetricKind>{})) {
    metrics::MetricKind made;
    kind.make([](const Key&, const declare::Member&) {}, &made);
    if (made->better() == mode) names.push_back(kind.key.path);
  }
  return names;
}

// The names that the measures of metrics to maximize contain, as top_5_accuracy contains accuracy.
const std::vector<std::string>& parts_to_maximize() {
  static const std::vector<std::string> parts = [] {
    const std::vector<std::string> names = metrics_of(Mode::max);
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

Mode mode_of(const std::string& metric) { return has_any(metric, parts_to_maximize()) ? Mode::max : Mode::min; }

std::optional<Mode> better_values(const std::string& measure) {
  if (has_any(measure, parts_to_maximize())) return Mode::max;
  const bool is_known = measure == "loss" || has_any(measure, metrics_of(Mode::min));
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
