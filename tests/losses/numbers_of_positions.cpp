// Targets that are numbers of the positions of sequences of different lengths.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/layers/pooling.h"
#include "core/losses/huber.h"
#include "core/losses/log_cosh.h"
#include "core/losses/mean_absolute_error.h"
#include "core/losses/mean_squared_error.h"
#include "core/losses/poisson.h"
#include "core/losses/quantile.h"
#include "core/losses/sigmoid_cross_entropy.h"
#include "core/metrics/errors.h"
#include "core/metrics/median_absolute_error.h"
#include "core/metrics/r2.h"
#include "tests/catch.h"
#include "tests/model/finite_differences.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

constexpr std::int64_t longest = 5, features = 3, numbers = 2;
constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
const std::vector<double> lengths{longest, 2, 0, 3};

const std::vector<losses::Loss>& losses_of_numbers() {
  static const std::vector<losses::Loss> all{losses::MeanSquaredError{}, losses::MeanAbsoluteError{},
                                             losses::Huber{0.5},         losses::LogCosh{},
                                             losses::Poisson{},          losses::SigmoidCrossEntropy{}};
  return all;
}

Network network_of(const losses::Loss& loss) {
  Network net = network(
      {layer("hidden", layers::Dense{4}), layer("tanh", layers::Tanh{}), layer("head", layers::Dense{numbers})}, loss);
  net.metrics = {metrics::Metric{metric::MeanAbsoluteError{}}, metrics::Metric{metric::MeanSquaredError{}},
                 metrics::Metric{metric::RootMeanSquaredError{}},
                 metrics::Metric{metric::MeanAbsolutePercentageError{}}, metrics::Metric{metric::R2{}}};
  net.lengths = true;
  return net;
}

Feed parameters_of(const model::Model& model) {
  Feed feed;
  for (const model::Parameter& parameter : model.parameters) {
    for (std::int64_t i = 0; i < numel(parameter.shape); ++i) {
      feed[parameter.name].push_back(std::sin(static_cast<double>(7 * feed.size()) + 1.7 * static_cast<double>(i)));
    }
  }
  return feed;
}

// Numbers from 0 to 1 of positions of the examples, `width` each; `behind` in padding.
Numbers rows_of(std::int64_t width, double phase, double behind) {
  Numbers all;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    for (std::int64_t k = 0; k < longest * width; ++k) {
      const double number = 0.5 + 0.5 * std::sin(phase + static_cast<double>(i) + 1.3 * static_cast<double>(k));
      all.push_back(static_cast<double>(k) < lengths[i] * static_cast<double>(width) ? number : behind);
    }
  }
  return all;
}

// Those of real positions alone, one after another.
Numbers without_padding(const Numbers& rows, std::int64_t width) {
  Numbers kept;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto from = rows.begin() + static_cast<std::ptrdiff_t>(i) * longest * width;
    kept.insert(kept.end(), from, from + static_cast<std::ptrdiff_t>(lengths[i]) * width);
  }
  return kept;
}

struct Positions {
  Numbers inputs, targets;
  std::vector<double> lengths;
  std::int64_t longest = 1;
};

Feed fed(const model::Model& model, const Positions& positions) {
  Feed feed = parameters_of(model);
  feed["inputs"] = positions.inputs;
  feed["targets"] = positions.targets;
  feed["lengths"] = positions.lengths;
  feed["mask"] = Numbers(positions.lengths.size(), 1.0);
  return feed;
}

model::Model model_of(const Network& net, std::int64_t positions) {
  return model::make_model(net, {DType::f64, {positions, features}}, {DType::f64, {positions, numbers}}, DType::f64);
}

// The measures of an evaluation.
std::vector<std::pair<std::string, double>> measures_of(const losses::Loss& loss, const Positions& positions) {
  const Network net = network_of(loss);
  const model::Model model = model_of(net, positions.longest);
  const Program program = model::evaluation_program(model, Mesh({{"devices", 1}}), {},
                                                    static_cast<std::int64_t>(positions.lengths.size()), all_ops());
  Feed feed = fed(model, positions);
  add_numbers(feed, losses::loss_numbers(model));
  const Feed found = results_of(program, feed);
  std::vector<std::vector<double>> means;
  for (const metrics::MeasurePart& part : model::measure_parts(model)) {
    means.push_back(found.at(part.name));
    for (double& mean : means.back()) mean /= found.at("count").front();
  }
  return model::finish_measures(model, means);
}

// A step on two devices in two microbatches.
Feed step_with(const losses::Loss& loss, double behind) {
  Network net = network_of(loss);
  net.place(Mesh({{"devices", 2}}), Mesh({{"devices", 2}}).all());
  const model::Model model = model_of(net, longest);
  const Program program = step::train_program(model, net.step, optimizer_of(net, model, {2, 2}), {2, 2}, all_ops());
  Feed feed = fed(model, {rows_of(features, 1, behind), rows_of(numbers, 2, behind), lengths, longest});
  feed["mask"] = {1, 1, 1, 0};
  feed["rows"] = {4, 5, 6, 7};
  add_numbers(feed, step::step_numbers(model, net.step, optimizer_of(net, model)));
  return results_of(program, feed);
}

std::string refused(std::vector<layers::Layer> list, const losses::Loss& loss, const Field& target,
                    std::vector<metrics::Metric> metrics = {}) {
  Network net = network(std::move(list), loss);
  net.metrics = std::move(metrics);
  net.lengths = true;
  return refusal(net, {DType::f32, {longest, features}}, target);
}

}  // namespace

TEST_CASE("losses and metrics of numbers of positions are those of the real positions, each once", "[losses]") {
  const Numbers inputs = rows_of(features, 1, 9), targets = rows_of(numbers, 2, 9);
  const Numbers each = without_padding(inputs, features), own = without_padding(targets, numbers);
  const std::vector<double> ones(own.size() / numbers, 1.0);
  for (const losses::Loss& loss : losses_of_numbers()) {
    INFO(loss->name());
    const auto padded = measures_of(loss, {inputs, targets, lengths, longest});
    const auto alone = measures_of(loss, {each, own, ones, 1});
    REQUIRE(padded.size() == 6);
    for (std::size_t i = 0; i < padded.size(); ++i) {
      INFO(padded[i].first);
      CHECK(padded[i].first == alone[i].first);
      CHECK(padded[i].second == Approx(alone[i].second).epsilon(1e-10));
    }
  }
}

TEST_CASE("what padding holds in inputs and targets changes no bit of a step of numbers", "[losses][step]") {
  for (const losses::Loss& loss : losses_of_numbers()) {
    INFO(loss->name());
    const Feed zeros = step_with(loss, 0);
    for (const auto& [name, values] : zeros) {
      INFO(name);
      CHECK(std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); }));
    }
    CHECK(step_with(loss, nothing) == zeros);
    CHECK(zeros.at("head.kernel") != parameters_of(model_of(network_of(loss), longest)).at("head.kernel"));
  }
}

TEST_CASE("the gradients of numbers of positions match finite differences", "[losses]") {
  for (const losses::Loss& loss : losses_of_numbers()) {
    if (loss.as<losses::MeanAbsoluteError>() != nullptr) continue;
    INFO(loss->name());
    const Network net = network_of(loss);
    const model::Model model = model_of(net, longest);
    const Program program = step::train_program(model, net.step, optimizer_of(net, model, {4, 1}), {4, 1}, all_ops());
    Feed feed = fed(model, {rows_of(features, 1, 9), rows_of(numbers, 2, 9), lengths, longest});
    feed["rows"] = {4, 5, 6, 7};
    add_numbers(feed, step::step_numbers(model, net.step, optimizer_of(net, model)));
    check_gradients(program, model, feed, results_of(program, feed), {1e-5, 1e-7, 3});
  }
}

TEST_CASE("a number at each position is an output of one number there", "[losses]") {
  Network net = network({layer("head", layers::Dense{1})}, losses::MeanSquaredError{});
  net.lengths = true;
  const model::Model model = model::make_model(net, {DType::f32, {longest, features}}, {DType::f32, {longest}});
  CHECK(model.target.shape == Shape{longest, 1});
  CHECK(model.numbers_of_target() == 1);
}

TEST_CASE("what takes no numbers of positions says so", "[losses]") {
  const Field two{DType::f32, {longest, 2}}, one{DType::f32, {longest}};
  const layers::Layer head = layer("head", layers::Dense{2});
  CHECK(refused({head}, losses::MeanSquaredError{}, two) == "accepted");
  CHECK(refused({head}, losses::MeanSquaredError{}, one) ==
        "mean_squared_error needs outputs and targets of equal shape; the output of the model is f32[5,2], the targets "
        "are f32[5] | end the layers with dense: 1, the numbers of each position");
  CHECK(refused({head}, losses::Quantile{}, two) ==
        "outputs have positions with lengths, f32[5,2], and quantile takes no numbers of each, f32[5,2] | "
        "mean_squared_error takes these; global_avg_pool, global_max_pool or take leaves one value an example");
  CHECK(refused({head}, losses::MeanSquaredError{}, {DType::f32, {4, 2}}) ==
        "outputs have positions with lengths, f32[5,2], and targets are not one label or numbers for each: f32[4,2] | "
        "global_avg_pool, global_max_pool or take leaves one value an example");
  CHECK(refused({head}, losses::MeanSquaredError{}, two, {metrics::Metric{metric::MedianAbsoluteError{}}}) ==
        "median_absolute_error takes one target an example; sequences with lengths have numbers at each position | "
        "mean_absolute_error, root_mean_squared_error and r2 take these");
  CHECK(
      refused({layer("mean", layers::GlobalAvgPool{}), layer("last", layers::Dense{longest})},
              losses::MeanSquaredError{}, one) ==
      "the targets are f32[5], numbers of the 5 positions of sequences with lengths, and the outputs have no positions "
      "| leave out the layer that takes them away; or, if these are no numbers of positions, store targets y[:, None] "
      "and end the layers with reshape");
}
