// Binds what `train` says of the measures of an evaluation.
#include <algorithm>

#include "core/base/text.h"
#include "core/spec/bind/bind.h"
#include "core/spec/keys.h"
#include "core/spec/yaml/find.h"
#include "core/spec/yaml/report.h"

namespace pmaptrain::spec {
namespace {

// The measures of one value.
std::vector<std::string> measures_of(const Spec& spec) {
  std::vector<std::string> names{"loss"};
  for (const Metric& metric : spec.metrics) {
    if (is_single_value(metric)) names.push_back(to_string(metric));
  }
  return names;
}

}  // namespace

Place bind_measure(const Node* section, const Spec& spec, const Reporter& reporter) {
  if (section == nullptr) return {};
  const Node* const metric = get(section, "metric");
  if (metric == nullptr) return error_place(*section);
  const std::vector<std::string> names = measures_of(spec);
  if (std::find(names.begin(), names.end(), metric->text) == names.end()) {
    const auto is_it = [&](const Metric& one) { return to_string(one) == metric->text; };
    if (std::any_of(spec.metrics.begin(), spec.metrics.end(), is_it)) {
      reporter.report(*metric, "metric '" + metric->text + "' is more than one value, and one decides",
                      "the measures of one value are " + join(names, ", "));
      return error_place(*metric);
    }
    const bool listed = find_ending("metrics." + metric->text).size() == 1;
    reporter.report(*metric, "there is no metric '" + metric->text + "'",
                    listed ? "add it to metrics: [" + metric->text + "]" : suggest(metric->text, names, "metrics"));
  }
  return metric->fallback ? error_place(*section) : error_place(*metric);
}

void bind_train(const Node& config, const Reporter& reporter, Spec& spec) {
  TrainSpec& train = spec.train;
  if (train.checkpoint.best) {
    train.checkpoint.best->place = bind_measure(get_path(&config, "train.checkpoint.best"), spec, reporter);
  }
  if (train.early_stopping) {
    train.early_stopping->place = bind_measure(get_path(&config, "train.early_stopping"), spec, reporter);
  }
}

}  // namespace pmaptrain::spec
