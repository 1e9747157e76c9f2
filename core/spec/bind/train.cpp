// Binds what `train` says of the measures of an evaluation.
#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "core/hints/hints.h"
#include "core/metrics/accuracy.h"
#include "core/spec/bind/bind.h"
#include "core/spec/keys.h"
#include "core/spec/rows/sections.h"
#include "core/spec/yaml/find.h"
#include "core/spec/yaml/report.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

// The measures of one value.
std::vector<std::string> measures_of(const Spec& spec) {
  std::vector<std::string> names{"loss"};
  for (const Metric& metric : spec.metrics) {
    if (metric.is_single_value()) names.push_back(metric.label());
  }
  return names;
}

// The text before the last separator in names such as f1/micro, and what follows it; empty where there is none.
std::pair<std::string, std::string> divided(const std::string& name, std::size_t at) {
  if (at == std::string::npos || at == 0 || at + 1 == name.size()) return {};
  return {name.substr(0, at), name.substr(at + 1)};
}

// Whether there is such a metric, of one value.
bool is_listed(const std::string& metric) {
  const Key* const key = find_key("metrics." + metric);
  return key != nullptr && key->need == Need::alternative && better_values(metric).has_value();
}

// The k of "top_5_accuracy"; empty for other names, and for a k that the metric does not take.
std::string k_of(const std::string& name) {
  constexpr std::string_view before = "top_", after = "_accuracy";
  if (!name.starts_with(before) || !name.ends_with(after) || name.size() <= before.size() + after.size()) return "";
  const std::string k = name.substr(before.size(), name.size() - before.size() - after.size());
  const Key& key = *find_key("metrics.top_k_accuracy.k");
  const Number<std::int64_t> number = parse_integer(k);
  if (!number.ok() || std::to_string(number.value) != k) return "";  // as it would be reported
  const auto value = static_cast<double>(number.value);
  return value >= key.low && value <= key.high ? k : "";
}

// What would make a name one of the measures: it is that of a metric that the config lacks, with or without its
// average, of a split, of another framework, or misspelt.
std::string help_for(const std::string& name, const std::vector<std::string>& measures) {
  const auto has = [&](const std::string& one) {
    return std::find(measures.begin(), measures.end(), one) != measures.end();
  };
  // `metrics` with `item`, whose measure has the name `measure`.
  const auto meant = [&](const std::string& measure, const std::string& item) {
    const std::string asked = measure == name ? "" : "did you mean '" + measure + "'? ";
    if (has(measure)) return "did you mean '" + measure + "'?";
    return asked + (asked.empty() ? "add it to metrics: [" : "Add it to metrics: [") + item + "]";
  };
  const auto meant_metric = [&](const std::string& metric) {
    const bool is_top = metric == "top_k_accuracy";
    return meant(is_top ? metrics::TopKAccuracy().label() : metric, metric);
  };
  const auto other_k =
      std::find_if(measures.begin(), measures.end(), [](const std::string& one) { return !k_of(one).empty(); });
  if (const std::string k = k_of(name); !k.empty()) return meant(name, "top_k_accuracy: {k: " + k + "}");
  if (name == "top_k_accuracy" && other_k != measures.end()) return meant(*other_k, name);
  if (is_listed(name)) return meant_metric(name);
  const auto [metric, average] = divided(name, name.find_last_of("/._"));
  const Key* const averages = find_key("metrics." + metric + ".average");
  if (averages != nullptr && average != "none" &&
      std::find(averages->words.begin(), averages->words.end(), average) != averages->words.end()) {
    if (average == averages->fallback) return meant(metric, metric);
    return meant(metric + "_" + average, metric + ": {average: " + average + "}");
  }
  const auto [split, measure] = divided(name, name.find_first_of("/._"));
  constexpr std::string_view splits[] = {"validation", "valid", "val", "eval", "test", "train"};
  if (std::find(std::begin(splits), std::end(splits), split) != std::end(splits) &&
      (has(measure) || is_listed(measure)))
    return meant_metric(measure) + (has(measure) ? " The split is always" : "; the split is always") +
           " validation, or test where there is no validation";
  const auto hint = hint_for("metric", name);
  if (hint && hint->is_supported() && is_listed(std::string(hint->meant)))
    return meant_metric(std::string(hint->meant));
  std::string help = suggest(name, measures, "metrics");
  if (!help.starts_with("did you mean")) {
    std::vector<std::string> all;
    for (const Key* const key : alternatives(*find_key("metrics"))) {
      if (is_listed(std::string(key->name()))) all.emplace_back(key->name());
    }
    if (const std::string near = nearest(name, all); !near.empty()) return meant_metric(near);
  }
  return help;
}

// Whether each item of the list of metrics is one. One that is refused may have been meant.
bool are_read(const Node* metrics) {
  if (metrics == nullptr) return true;
  return metrics->valid() && std::all_of(metrics->items.begin(), metrics->items.end(), [](const Node& item) {
           return Choice<metrics::MetricKind>::chosen(item).name != nullptr;
         });
}

}  // namespace

Place bind_measure(const Node& config, const Node* section, const Spec& spec, const Reporter& reporter) {
  if (section == nullptr) return {};
  const Node* const metric = get(section, "metric");
  if (metric == nullptr) return error_place(*section);
  const std::vector<std::string> names = measures_of(spec);
  if (std::find(names.begin(), names.end(), metric->text) == names.end() && are_read(config.find("metrics"))) {
    const auto is_it = [&](const Metric& one) { return one.label() == metric->text; };
    if (std::any_of(spec.metrics.begin(), spec.metrics.end(), is_it)) {
      reporter.report(*metric, "metric '" + metric->text + "' is more than one value, and one decides",
                      "the measures of one value are " + join(names, ", "));
      return error_place(*metric);
    }
    reporter.report(*metric, "there is no metric '" + metric->text + "'", help_for(metric->text, names));
  }
  return metric->fallback ? error_place(*section) : error_place(*metric);
}

void bind_train(const Node& config, const Reporter& reporter, Spec& spec) {
  TrainSpec& train = spec.train;
  if (train.checkpoint.best) {
    train.checkpoint.best->place = bind_measure(config, get_path(&config, "train.checkpoint.best"), spec, reporter);
  }
  if (train.early_stopping) {
    train.early_stopping->place = bind_measure(config, get_path(&config, "train.early_stopping"), spec, reporter);
  }
}

}  // namespace pmaptrain::spec
