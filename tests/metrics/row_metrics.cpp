// Metrics that are computed from a row of numbers of every example.
#include "core/model/row_metrics.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/losses/mean_squared_error.h"
#include "core/losses/sigmoid_cross_entropy.h"
#include "core/metrics/confusion_matrix.h"
#include "core/metrics/curves.h"
#include "core/metrics/median_absolute_error.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

struct Example {
  float weight = 1;
  int actual = 0, predicted = 0;
  std::vector<float> probabilities;
};

model::Model model_with(std::int64_t outputs, std::vector<metrics::MetricKind> kinds,
                        const losses::Loss& loss = losses::SoftmaxCrossEntropy{}) {
  Network net = network({layer("head", layers::Dense{outputs})}, loss);
  for (metrics::MetricKind& kind : kinds) net.metrics.push_back({std::move(kind)});
  return model::make_model(net, {DType::f32, {2}}, labels);
}

model::RowMeasures measured(const model::Model& model, const std::vector<Example>& examples) {
  std::vector<float> rows;
  for (const Example& one : examples) {
    rows.insert(rows.end(), {one.weight, static_cast<float>(one.actual), static_cast<float>(one.predicted)});
    rows.insert(rows.end(), one.probabilities.begin(), one.probabilities.end());
  }
  return model::finish_rows(model, rows);
}

// The definition: of all pairs of an example of the class and another, those in the right order.
double share_of_ordered_pairs(const std::vector<Example>& examples, int of_class, std::size_t column) {
  double ordered = 0, all = 0;
  for (const Example& a : examples) {
    for (const Example& b : examples) {
      if (a.actual != of_class || b.actual == of_class) continue;
      const double weight = static_cast<double>(a.weight) * static_cast<double>(b.weight);
      const float higher = a.probabilities[column], lower = b.probabilities[column];
      ordered += higher > lower ? weight : higher == lower ? weight / 2 : 0;
      all += weight;
    }
  }
  return ordered / all;
}

// With equal probabilities among them; `weights` gives some half a weight, and some none.
std::vector<Example> examples_of(int classes, int outputs, bool weights) {
  std::vector<Example> examples;
  for (int i = 0; i < 97; ++i) {
    Example one{weights ? static_cast<float>(i % 5) / 2 : 1, (i * i + i / 3) % classes, 0, {}};
    for (int k = 0; k < outputs; ++k) one.probabilities.push_back(static_cast<float>((i * 31 + k * 17) % 23) / 23);
    examples.push_back(std::move(one));
  }
  return examples;
}

}  // namespace

TEST_CASE("roc_auc is the share of pairs whose probabilities are in the right order, ties and weights counted",
          "[metrics]") {
  const bool weights = GENERATE(false, true);
  const std::vector<Example> of_three = examples_of(3, 3, weights);
  const auto each_of_three = measured(model_with(3, {metric::RocAuc{}, metric::RocAuc{each}}), of_three).values;
  REQUIRE(each_of_three.size() == 4);
  double sum = 0;
  for (int c = 0; c < 3; ++c) {
    const double area = share_of_ordered_pairs(of_three, c, static_cast<std::size_t>(c));
    const auto& [name, found] = each_of_three[static_cast<std::size_t>(c) + 1];
    CHECK(name == "roc_auc_" + std::to_string(c));
    CHECK(found == Approx(area).epsilon(1e-12));
    sum += area;
  }
  CHECK(each_of_three.front().first == "roc_auc");
  CHECK(each_of_three.front().second == Approx(sum / 3).epsilon(1e-12));

  const std::vector<Example> of_two = examples_of(2, 1, weights);
  const model::Model binary = model_with(1, {metric::RocAuc{}}, losses::SigmoidCrossEntropy{});
  CHECK(measured(binary, of_two).values.front().second == Approx(share_of_ordered_pairs(of_two, 1, 0)).epsilon(1e-12));
}

TEST_CASE("roc_auc is not a number where all examples are of one class, or a probability is none", "[metrics]") {
  const model::Model model = model_with(3, {metric::RocAuc{}, metric::RocAuc{each}});
  std::vector<Example> examples{{1, 0, 0, {0.5F, 0.25F, 0.25F}}, {1, 1, 0, {0.5F, 0.25F, 0.25F}}};
  const auto some = measured(model, examples).values;
  CHECK(std::isnan(some[0].second));  // as scikit-learn has it where a class is missing
  CHECK(some[1].second == 0.5);
  CHECK(std::isnan(some[3].second));
  examples[1].actual = 0;
  CHECK(std::isnan(measured(model, examples).values[0].second));
  CHECK(std::isnan(measured(model, {}).values[0].second));
  examples[1] = {1, 1, 0, {std::nanf(""), 0, 0}};
  CHECK(std::isnan(measured(model, examples).values[1].second));
}

TEST_CASE("a confusion matrix counts weights by the true and the predicted class, without padding", "[metrics]") {
  const model::Model model = model_with(3, {metric::ConfusionMatrix{}});
  const std::vector<float> chances(3, 0.25F);
  const model::RowMeasures found =
      measured(model, {{1, 0, 0, chances}, {1, 0, 2, chances}, {0.5F, 2, 1, chances}, {0, 1, 1, chances}});
  CHECK(found.values.empty());
  REQUIRE(found.confusion);
  CHECK(*found.confusion == metrics::Confusion{{1, 0, 1}, {0, 0, 0}, {0, 0.5, 0}});
}

TEST_CASE("metrics of rows equal scikit-learn's, for each average", "[metrics]") {
  // Made by tests/parity/make_metric_fixtures.py.
  const auto cases = nlohmann::json::parse(test::read_text("tests/parity/metrics.json"));
  const auto check = [](const model::Model& model, const std::vector<float>& rows, const nlohmann::json& expected) {
    const auto values = model::finish_rows(model, rows).values;
    CHECK(values.size() == expected.size());
    for (const auto& [name, value] : values) {
      INFO(name);
      REQUIRE(expected.contains(name));
      CHECK(value == Approx(expected[name].get<double>()).epsilon(1e-12));
    }
  };
  const auto kinds = [](std::vector<metric::Average> averages) {
    std::vector<metrics::MetricKind> all;
    for (const metric::Average average : averages) {
      all.emplace_back(metric::RocAuc{average});
      all.emplace_back(metric::AveragePrecision{average});
    }
    return all;
  };
  using enum metric::Average;
  for (const char* const name : {"labels", "classes", "answers"}) {
    INFO(name);
    const auto& one = cases[name];
    const bool multi = std::string(name) == "labels", single = std::string(name) == "answers";
    std::vector<float> rows;
    for (std::size_t i = 0; i < one["truth"].size(); ++i) {
      const auto scores = one["scores"][i].get<std::vector<float>>();
      rows.push_back(1);
      if (!multi) rows.insert(rows.end(), {one["truth"][i].get<float>(), 0});
      rows.insert(rows.end(), scores.begin(), scores.end());
      if (multi) {
        for (const auto& label : one["truth"][i]) rows.push_back(label.get<float>());
      }
    }
    if (multi) {
      Network net = network({layer("head", layers::Dense{4})}, losses::SigmoidCrossEntropy{});
      for (metrics::MetricKind& kind : kinds({macro, micro, weighted, samples, none})) net.metrics.push_back({kind});
      check(model::make_model(net, {DType::f32, {2}}, {DType::f32, {4}}), rows, one["values"]);
    } else if (single) {
      check(model_with(1, kinds({macro}), losses::SigmoidCrossEntropy{}), rows, one["values"]);
    } else {
      check(model_with(3, kinds({macro, micro, weighted, none})), rows, one["values"]);
    }
  }
  Network net = network({layer("head", layers::Dense{2})}, losses::MeanSquaredError{});
  net.metrics = {metrics::Metric{metric::MedianAbsoluteError{}}};
  std::vector<float> rows;
  for (const auto& errors : cases["numbers"]["errors"]) {
    rows.push_back(1);
    for (const auto& error : errors) rows.push_back(std::abs(error.get<float>()));
  }
  check(model::make_model(net, {DType::f32, {2}}, {DType::f32, {2}}), rows, cases["numbers"]["values"]);
}

TEST_CASE("a label of which all examples are, or none is, is left out of the mean over labels, and counted",
          "[metrics]") {
  Network net = network({layer("head", layers::Dense{3})}, losses::SigmoidCrossEntropy{});
  net.metrics = {metrics::Metric{metric::RocAuc{}}, metrics::Metric{metric::RocAuc{each}}};
  const model::Model model = model::make_model(net, {DType::f32, {2}}, {DType::f32, {3}});
  // Weight, three probabilities, three labels.
  const std::vector<float> rows{1, 0.75F, 0.5F, 0.5F, 1, 1, 0, 1, 0.25F, 0.5F, 0.5F, 0, 1, 0, 0, 1, 1, 1, 1, 1, 1};
  const auto values = model::finish_rows(model, rows).values;
  REQUIRE(values.size() == 5);
  CHECK(values[0] == std::pair<std::string, double>("roc_auc", 1.0));
  CHECK(values[1] == std::pair<std::string, double>("roc_auc_left_out", 2.0));
  CHECK(values[2].second == 1.0);
  CHECK(std::isnan(values[3].second));
  CHECK(std::isnan(values[4].second));
  // A probability that is no number leaves nothing out: the mean is none, either.
  std::vector<float> broken = rows;
  broken[1] = std::nanf("");
  const auto found = model::finish_rows(model, broken).values;
  CHECK(std::isnan(found.at(0).second));
  CHECK(found.at(1) == std::pair<std::string, double>("roc_auc_left_out", 2.0));
}

TEST_CASE("metrics of rows are for one label of an example, and no part of a training step", "[metrics]") {
  Network net = network({layer("head", layers::Dense{1})}, losses::MeanSquaredError{});
  net.metrics = {metrics::Metric{metric::RocAuc{}}};
  CHECK(refusal(net, {DType::f32, {2}}, {DType::f32, {1}}) ==
        "roc_auc takes class labels; the targets are f32[1] | mean_absolute_error takes targets like these; if they "
        "are labels, store them as integers");
  const model::Model model = model_with(3, {metric::RocAuc{}, metric::ConfusionMatrix{}});
  CHECK(model::measure_parts(model).size() == 1);
  CHECK(model::row_size(model) == 6);
  CHECK(model::row_size(model_with(3, {metric::Accuracy{}})) == 0);
}
