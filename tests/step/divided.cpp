// A step whose parameters devices divide, against finite differences.
//
// Each position along `model` computes a network of its own, as no layer does: it has some of the hidden units, and all
// of the bias of the head. The loss is the sum of the networks' losses.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "core/ops/collective/collective.h"
#include "core/optimizers/sgd.h"
#include "core/step/optimizer.h"
#include "core/step/step_program.h"
#include "tests/catch.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

constexpr int data_axis = 0, model_axis = 1;
const Mesh mesh({{"data", 3}, {"model", 2}});

constexpr std::size_t units = 7, units_each = 4;  // of four units the second position has three, and padding

// The sum of the losses of all positions along `model`.
struct SummedCrossEntropy : losses::SoftmaxCrossEntropy {
  static declare::Declaration<SummedCrossEntropy> declaration() {
    return {{.path = "summed", .meaning = "A sum.", .example = "loss: summed"}, {}};
  }
  Value losses(const losses::LossCall& call) const {
    return call.b.emit(ops::Psum{AxisSet::of(model_axis)}, {SoftmaxCrossEntropy::losses(call)});
  }
};

Network divided_network() {
  Network net = classifier(mesh);
  net.place(mesh, AxisSet::of(data_axis));
  net.loss = SummedCrossEntropy();
  net.metrics.clear();
  return net;
}

model::Model divided_model(const Network& net) {
  model::Model model = model::make_model(net, {DType::f64, {3}}, labels, DType::f64);
  for (model::Parameter& parameter : model.parameters) {
    const std::vector<int> along{model_axis};
    if (parameter.name == "dense_0.kernel") parameter.shape = {3, units}, parameter.divided = {{}, along};
    if (parameter.name == "dense_0.bias") parameter.shape = {units}, parameter.divided = {along};
    if (parameter.name == "head.kernel") parameter.shape = {units, 3}, parameter.divided = {along};
    if (parameter.name == "head.bias") parameter.read_along = AxisSet::of(model_axis);
  }
  return model;
}

struct Batch {
  Numbers inputs, targets, mask{1, 1, 1, 1, 0, 1}, rows{10, 11, 12, 13, 14, 15};
  Batch() {
    for (int i = 0; i < 18; ++i) inputs.push_back(std::sin(1.0 + 1.7 * i));
    for (int i = 0; i < 6; ++i) targets.push_back(i * i % 3);
  }
};

Feed parameters_by_hand() {
  Feed feed;
  const auto fill = [&](const char* name, std::size_t count, double phase) {
    for (std::size_t i = 0; i < count; ++i) feed[name].push_back(0.8 * std::cos(phase + 1.3 * static_cast<double>(i)));
  };
  fill("dense_0.kernel", 3 * units, 0.1);
  fill("dense_0.bias", units, 0.5);
  fill("head.kernel", units * 3, 0.9);
  fill("head.bias", 3, 1.4);
  return feed;
}

// The mean over the examples of the sum of both networks' losses: no equation of ours takes part.
double loss_of(const Feed& parameters, const Batch& batch) {
  double sum = 0, count = 0;
  for (std::size_t row = 0; row < batch.mask.size(); ++row) {
    count += batch.mask[row];
    if (batch.mask[row] == 0) continue;
    for (std::size_t first = 0; first < units; first += units_each) {
      Numbers scores = parameters.at("head.bias");
      for (std::size_t j = first; j < std::min(first + units_each, units); ++j) {
        double hidden = parameters.at("dense_0.bias")[j];
        for (std::size_t k = 0; k < 3; ++k) {
          hidden += batch.inputs[row * 3 + k] * parameters.at("dense_0.kernel")[k * units + j];
        }
        for (std::size_t c = 0; c < 3; ++c) scores[c] += std::tanh(hidden) * parameters.at("head.kernel")[j * 3 + c];
      }
      double exponentials = 0;
      for (const double score : scores) exponentials += std::exp(score);
      sum += std::log(exponentials) - scores[static_cast<std::size_t>(batch.targets[row])];
    }
  }
  return sum / count;
}

Feed gradients_of(const Feed& parameters, const Batch& batch) {
  Feed gradients;
  for (const auto& [name, values] : parameters) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      constexpr double step = 1e-5;
      Feed above = parameters, below = parameters;
      above[name][i] += step;
      below[name][i] -= step;
      gradients[name].push_back((loss_of(above, batch) - loss_of(below, batch)) / (2 * step));
    }
  }
  return gradients;
}

double norm_of(const Feed& gradients) {
  double squares = 0;
  for (const auto& [name, values] : gradients) {
    for (const double value : values) squares += value * value;
  }
  return std::sqrt(squares);
}

// Each device has two examples.
Feed stepped(const Network& net, const Feed& parameters, const Batch& batch, std::int64_t microbatches = 1) {
  const model::Model model = divided_model(net);
  const step::Optimizer optimizer = optimizer_of(net, model);
  const Program program = step::train_program(model, net.step, optimizer, {2, microbatches}, all_ops());
  Feed feed = parameters;
  add_numbers(feed, step::step_numbers(model, net.step, optimizer));
  feed["inputs"] = batch.inputs;
  feed["targets"] = batch.targets;
  feed["mask"] = batch.mask;
  feed["rows"] = batch.rows;
  if (net.step.ema) {
    for (const auto& [name, values] : parameters) feed["ema/" + name] = values;
  }
  return results_of(program, feed);
}

using Names = std::vector<std::string>;

std::string refusal_of(const std::function<void()>& make) {
  try {
    make();
  } catch (const Error& error) {
    const Diagnostic& first = error.diagnostics().front();
    return first.place.file + ":" + std::to_string(first.place.line) + ":" + std::to_string(first.place.column) + ": " +
           first.message + " | " + first.help;
  }
  return "accepted";
}

}  // namespace

TEST_CASE("parameters are in one bucket if they are divided and summed along the same axes", "[step]") {
  const Network net = divided_network();
  const model::Model model = divided_model(net);
  const std::vector<model::Bucket> buckets = step::buckets_of(model, optimizer_of(net, model), {});
  std::vector<Names> names;
  for (const model::Bucket& bucket : buckets) {
    names.emplace_back();
    for (const std::size_t i : bucket.parameters) names.back().push_back(model.parameters[i].name);
  }
  const std::vector<Names> expected{{"head.bias"}, {"head.kernel", "dense_0.bias", "dense_0.kernel"}};
  CHECK(names == expected);
}

TEST_CASE("gradients of divided parameters match finite differences, and norms count each element once", "[step]") {
  const Batch batch;
  const Feed parameters = parameters_by_hand();
  const Feed gradients = gradients_of(parameters, batch);
  const double norm = norm_of(gradients);
  const auto check_step = [&](const Network& net, double factor, std::int64_t microbatches) {
    INFO(microbatches << " microbatches");
    const Feed result = stepped(net, parameters, batch, microbatches);
    CHECK(result.at("count").front() == 5.0);
    CHECK(result.at("loss").front() == Approx(loss_of(parameters, batch)).epsilon(1e-12));
    CHECK(result.at("grad_norm").front() == Approx(norm).epsilon(1e-7));
    for (const auto& [name, values] : parameters) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        INFO(name << "[" << i << "]");
        const double moved = values[i] - result.at(name)[i];  // plain sgd at rate 1
        CHECK(moved == Approx(factor * gradients.at(name)[i]).epsilon(1e-6).margin(1e-9));
        if (!net.step.ema) continue;
        const double average = 0.9 * values[i] + 0.1 * result.at(name)[i];
        CHECK(result.at("ema/" + name)[i] == Approx(average).epsilon(1e-12).margin(1e-12));
      }
    }
  };
  for (const int stage : {0, 1, 2, 3}) {
    Network net = divided_network();
    const auto from = [&](int first) { return stage >= first ? net.data_axes : AxisSet(); };
    INFO("stage " << stage);
    for (const std::int64_t microbatches : {1, 2}) {
      net.step.sharding = {from(1), from(2), from(3), true, stage == 3 && microbatches == 1};
      net.step.ema = {};
      net.optimizer.clip_by_global_norm = {};
      check_step(net, 1.0, microbatches);
      net.step.ema = optimizers::Ema{0.9, true};
      net.optimizer.clip_by_global_norm = 0.5 * norm;
      check_step(net, 0.5, microbatches);
    }
  }
}

TEST_CASE("a divided gradient that is not finite in one part is refused by all devices", "[step]") {
  Batch batch;
  Feed parameters = parameters_by_hand();
  parameters["dense_0.kernel"][units - 1] = std::nan("");  // the last unit, of the second position
  Network net = divided_network();
  for (const bool judges_update : {false, true}) {
    if (judges_update) net.optimizer.rule = optimizers::Sgd{0.9};
    const Feed result = stepped(net, parameters, batch);
    CHECK(result.at("finite").front() == 0.0);
    CHECK(result.at("head.bias") == parameters.at("head.bias"));
    CHECK(result.at("dense_0.bias") == parameters.at("dense_0.bias"));
  }
}

TEST_CASE("a layer that forgets the sum of what devices have is refused with its parameter and the axis", "[step]") {
  Network net = classifier(mesh);
  net.place(mesh, AxisSet::of(data_axis));
  net.tensor_axes = AxisSet::of(model_axis);
  model::Model model = model::make_model(net, {DType::f64, {3}}, labels, DType::f64);
  const step::Optimizer optimizer = optimizer_of(net, model);
  REQUIRE(model.layers.back().division == layers::Division::rows);
  CHECK_NOTHROW(step::train_program(model, net.step, optimizer, {2, 1}, all_ops()));
  model.layers.back().apply = [](const layers::LayerCall& call, Value x) {
    return call.b.emit(ops::Matmul{}, {x, call.parameters[0], call.parameters[1]});
  };
  for (const std::int64_t microbatches : {1, 2}) {
    CHECK(
        refusal_of([&] {
          step::train_program(model, net.step, optimizer, {2, microbatches}, all_ops());
        }) ==
        "net.yaml:7:5: parameter 'head.kernel' is divided over the devices along {model}, and what they make of their "
        "parts is not added up: head gives f64[" +
            std::to_string(2 / microbatches) +
            ",3]{data, model} | a reduction is missing in the equations of the layer: psum over {model}");
  }
}

TEST_CASE("a loss that differs on devices with the same examples is refused with the axis", "[step]") {
  Network net = divided_network();
  net.loss = losses::SoftmaxCrossEntropy();
  CHECK(
      refusal_of([&] { stepped(net, parameters_by_hand(), Batch()); }) ==
      "net.yaml:9:7: 'loss' would differ on the devices along {model}, which have the same examples: a device's sum is "
      "f64[]{data, model} | a reduction is missing in its equations: psum over {model}");
}

TEST_CASE("the stage of synchronised gradients adds up none that devices divide", "[step]") {
  const Network net = divided_network();
  const model::Model model = divided_model(net);
  const Program program =
      step::train_program(model, net.step, optimizer_of(net, model), {2, 1}, all_ops(), step::Stage::synchronised);
  for (const Output& output : program.outputs) {
    if (!output.name.starts_with("grad.")) continue;
    INFO(output.name);
    const bool is_divided = output.name != "grad.head.bias";
    CHECK(program.type(output.value).varying == (is_divided ? AxisSet::of(model_axis) : AxisSet()));
  }
}
