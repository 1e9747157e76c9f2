#include "core/setup/target_advice.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>

#include "core/base/text.h"
#include "core/losses/huber.h"
#include "core/losses/mean_squared_error.h"
#include "core/losses/poisson.h"
#include "core/optimizers/sgd.h"
#include "core/run/records/lines.h"
#include "core/setup/values.h"
#include "core/step/optimizer.h"

namespace pmaptrain::setup {
namespace {

struct Moments {
  double mean = 0, deviation = 0;
};

// Of up to 10,000 examples, the moments of each number of a target.
std::vector<Moments> moments_of(const data::Dataset& dataset) {
  constexpr std::int64_t most = 10000;
  const data::Field target = dataset.target();
  const auto numbers = static_cast<std::size_t>(numel(target.shape));
  std::vector<std::byte> row(target.bytes());
  std::vector<double> sums(numbers), squares(numbers);
  const std::int64_t examples = std::min(dataset.size(), most);
  for (std::int64_t i = 0; i < examples; ++i) {
    dataset.read(i, nullptr, row.data());
    const std::vector<double> values = to_doubles(row, target.dtype);
    for (std::size_t j = 0; j < numbers; ++j) {
      sums[j] += values[j];
      squares[j] += values[j] * values[j];
    }
  }
  std::vector<Moments> moments(numbers);
  for (std::size_t j = 0; j < numbers; ++j) {
    const double mean = sums[j] / static_cast<double>(examples);
    const double variance = squares[j] / static_cast<double>(examples) - mean * mean;
    moments[j] = {mean, std::sqrt(std::max(0.0, variance))};
  }
  return moments;
}

std::string shown(double begin) { return begin == 0 ? "0" : run::compact(begin); }

// What computes the outputs: the last layer that has a kernel.
struct OutputLayer {
  double inputs = 0;  // of each output
  double bias = 0;    // with which it begins
};
std::optional<OutputLayer> output_layer(const model::Model& model) {
  const std::vector<const model::Node*> layers = model.nodes();
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    std::optional<OutputLayer> found;
    double bias = 0;
    for (const model::Parameter& parameter : (*layer)->parameters) {
      if (parameter.name.ends_with(".kernel"))
        found = {static_cast<double>(numel(parameter.shape)) / static_cast<double>(parameter.shape.back())};
      if (parameter.name.ends_with(".bias") && !parameter.initializer.draws()) bias = parameter.initializer.scale;
    }
    if (!found) continue;
    found->bias = bias;
    return found;
  }
  return std::nullopt;
}

// An upper bound of how far a step moves a parameter. Rules such as Adam move it by about the learning rate; SGD moves
// it by the gradient, which some losses bound. Empty: there is no bound.
std::optional<double> move_of_step(const step::Optimizer& optimizer, const losses::Loss& loss) {
  const double rate = optimizer.learning_rate;
  const auto* const sgd = optimizer.options.rule.as<optimizers::Sgd>();
  if (sgd == nullptr) return rate;
  if (loss.as<losses::MeanSquaredError>() != nullptr) return std::nullopt;
  const auto* const huber = loss.as<losses::Huber>();
  return rate * (huber != nullptr ? huber->delta : 1.0) / (1 - sgd->momentum);
}

// The outputs are logarithms of rates. Where these begin far below the counts, gradients are of the size of the counts
// until the rates have reached their mean, and what tells examples apart is small beside that.
void distant_counts(const Setup& setup, const std::vector<Moments>& moments, double begin,
                    std::vector<std::string>& out) {
  constexpr double far = 100;  // as the factor between the rates
  double mean = 0;
  for (const Moments& each : moments) mean += each.mean / static_cast<double>(moments.size());
  if (!(mean > far * std::exp(begin))) return;
  const std::string bias = run::compact(std::log(mean));
  out.push_back("counts are about " + run::compact(mean) + ", and outputs, which are logarithms of rates, begin near " +
                shown(begin) +
                " (0 is a rate of 1): this trains slowly, or not at all; let them begin at the logarithm "
                "of the mean: end the layers with dense: {features: " +
                std::to_string(numel(setup.model.output)) + ", bias_init: {constant: " + run::compact(std::log(mean)) +
                "}}");
}

}  // namespace

void add_distant_targets(const Setup& setup, std::vector<std::string>& out) {
  constexpr double near = 10;  // targets up to here are not far from 0
  const model::Model& model = setup.model;
  const data::Dataset& train = *setup.source.train;
  if (!takes_numbers(model.loss) || setup.member_spec().model.initial_from || numel(train.target().shape) == 0) return;
  const std::optional<OutputLayer> layer = output_layer(model);
  if (!layer) return;
  const std::vector<Moments> moments = moments_of(train);
  if (model.loss.as<losses::Poisson>() != nullptr) return distant_counts(setup, moments, layer->bias, out);

  const step::Optimizer& optimizer = setup.optimizer();
  const std::optional<double> move = move_of_step(optimizer, model.loss);
  if (!move) return;
  const auto steps = static_cast<double>(setup.timetable.steps);
  const std::vector<data::TargetScale> scales = spec::target_scales(setup.spec().data, std::ssize(moments));
  double scale = 0, distance = 0;
  for (std::size_t j = 0; j < moments.size(); ++j) {
    if (scales[j] != data::TargetScale::none) continue;
    const double from_begin = std::max(std::abs(moments[j].mean - layer->bias), moments[j].deviation);
    if (from_begin <= distance) continue;
    distance = from_begin;
    scale = std::max(std::abs(moments[j].mean), moments[j].deviation);
  }
  // Each weight of an output, and its bias, moves by so much; the weights are for inputs of about 1.
  const double reach = (layer->inputs + 1) * *move * steps;
  if (distance <= std::max(near, reach)) return;
  out.push_back("targets are about " + run::compact(scale) + ", and outputs begin near " + shown(layer->bias) +
                ": at a learning rate of " + (optimizer.schedule ? "at most " : "") + exact(optimizer.learning_rate) +
                ", " + counted(setup.timetable.steps, "step") +
                " will hardly reach them; data.normalize_targets: auto trains in units of their standard deviation");
}

}  // namespace pmaptrain::setup
