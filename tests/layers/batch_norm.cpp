// batch_norm: its statistics, and what a step makes of them.
#include "core/layers/batch_norm.h"

#include <cmath>

#include "core/ops/all.h"
#include "tests/catch.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

const Field one_pair{DType::f64, {2}};

Network normalised_network(Mesh mesh, layers::BatchNorm norm) {
  Network net = network({layer("norm", norm), layer("head", layers::Dense{2, false})});
  net.place(mesh, mesh.all());
  return net;
}

void check_numbers(const Numbers& found, const Numbers& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).epsilon(1e-12));
}

// A step of the network in f64; `rows` examples on each device.
Feed step_of(const Network& net, model::BatchShape shape, Feed feed) {
  const model::Model model = model::make_model(net, one_pair, labels, DType::f64);
  const step::Optimizer optimizer = optimizer_of(net, model, shape);
  const step::StepProgram step = step::step_program(model, net.step, optimizer, shape, all_ops());
  add_numbers(feed, step::step_numbers(model, net.step, optimizer));
  feed.try_emplace("norm.scale", Numbers{1, 1});
  feed.try_emplace("norm.mean", Numbers{0, 0});
  feed.try_emplace("norm.var", Numbers{1, 1});
  feed.try_emplace("head.kernel", Numbers{1, 0, 0, 1});
  return results_of(step.program, feed);
}

}  // namespace

TEST_CASE("an evaluation normalises by the running statistics", "[layers]") {
  const model::Model model =
      model::make_model(normalised_network(Mesh({{"devices", 1}}), {{}, 0.9, 0.5}), one_pair, labels, DType::f64);
  CHECK(model.parameter_count() == 4 + 4);
  CHECK(model.has_statistics());
  const Feed feed{{"norm.scale", {2, 3}},
                  {"norm.bias", {10, 20}},
                  {"norm.mean", {1, 2}},
                  {"norm.var", {3.5, 8.5}},
                  {"head.kernel", {1, 0, 0, 1}}};
  check_numbers(forward(model, {5, 8, 1, 2}, feed).at("y"), {10 + 2 * 4 / 2.0, 20 + 3 * 6 / 3.0, 10, 20});
}

TEST_CASE("a step moves the running statistics to those of its microbatches and devices, and leaves out padding",
          "[layers][step]") {
  // The rows of two devices with two microbatches of two: 1 and 3 | 5 and 5 | 2 and padding | padding.
  const Numbers inputs{1, 10, 3, 30, 5, 50, 5, 50, 2, 20, 777, 777, 777, 777, 777, 777};
  const Numbers mask{1, 1, 1, 1, 1, 0, 0, 0};
  Network net = normalised_network(Mesh({{"devices", 2}}), {{}, 0.75});
  const Feed found = step_of(net, {4, 2},
                             {{"inputs", inputs},
                              {"mask", mask},
                              {"targets", Numbers(8, 0)},
                              {"rows", Numbers(8, 0)},
                              {"norm.mean", {100, 200}},
                              {"norm.var", {40, 80}}});
  // The microbatch of one row counts for nothing.
  const double mean = (2 * 2 + 2 * 5) / 4.0, variance = (2 * 1 + 2 * 0) / 4.0;
  check_numbers(found.at("norm.mean"), {75 + mean / 4, 150 + 10 * mean / 4});
  check_numbers(found.at("norm.var"), {30 + variance / 4, 60 + 100 * variance / 4});
  CHECK(std::isfinite(found.at("loss").front()));
}

TEST_CASE("rows that give a statistic one value are normalised by the running statistics and do not move them",
          "[layers][step]") {
  const auto step = [](Mesh mesh, layers::BatchNorm norm, model::BatchShape shape, const Numbers& mask) {
    Feed feed{{"inputs", {5, 80, 7, 70, 9, 60, 3, 50}},
              {"mask", mask},
              {"targets", Numbers(4, 0)},
              {"rows", Numbers(4, 0)},
              {"norm.mean", {1, 20}},
              {"norm.var", {4, 900}}};
    feed["norm.bias"] = {0, 0};
    return step_of(normalised_network(std::move(mesh), std::move(norm)), shape, feed);
  };
  // (5 - 1) / 2 and (80 - 20) / 30 are the logits; the loss is that of class 0.
  const double alone = std::log1p(std::exp((80 - 20) / 30.0 - (5 - 1) / 2.0));
  const auto check_alone = [&](const Feed& found) {
    CHECK(found.at("norm.mean") == Numbers{1, 20});
    CHECK(found.at("norm.var") == Numbers{4, 900});
    CHECK(found.at("loss").front() == Approx(alone).epsilon(1e-4));
  };
  const Mesh one({{"devices", 1}}), two({{"devices", 2}});
  check_alone(step(one, {{}, 0.5}, {4, 1}, {1, 0, 0, 0}));
  check_alone(step(one, {{}, 0.5}, {4, 2}, {1, 0, 0, 0}));
  check_alone(step(two, {{}, 0.5}, {2, 1}, {1, 0, 0, 0}));
  check_alone(step(two, {{{"devices"}}, 0.5}, {2, 1}, {1, 0, 0, 0}));
  // Two rows of different devices are enough along the axis.
  const Feed both = step(two, {{{"devices"}}, 0.5}, {2, 1}, {1, 0, 1, 0});
  check_numbers(both.at("norm.mean"), {0.5 + 7 / 2.0, 10 + 70 / 2.0});
  check_numbers(both.at("norm.var"), {2 + 4 / 2.0, 450 + 100 / 2.0});
  // The second device has one row: the statistics are those of the first.
  const Feed first = step(two, {{}, 0.5}, {2, 1}, {1, 1, 1, 0});
  check_numbers(first.at("norm.mean"), {0.5 + 6 / 2.0, 10 + 75 / 2.0});
  check_numbers(first.at("norm.var"), {2 + 1 / 2.0, 450 + 25 / 2.0});
}

TEST_CASE("statistics over an axis are those of all its devices", "[layers][step]") {
  const Numbers inputs{1, 10, 3, 30, 5, 50, 7, 70};
  const Feed feed{{"inputs", inputs}, {"mask", Numbers(4, 1)}, {"targets", {0, 1, 0, 1}}, {"rows", Numbers(4, 0)}};
  const Feed whole = step_of(normalised_network(Mesh({{"devices", 1}}), {{}, 0.5}), {4, 1}, feed);
  const Feed together = step_of(normalised_network(Mesh({{"devices", 2}}), {{{"devices"}}, 0.5}), {2, 1}, feed);
  const Feed apart = step_of(normalised_network(Mesh({{"devices", 2}}), {{}, 0.5}), {2, 1}, feed);
  for (const char* const name : {"norm.mean", "norm.var", "norm.scale", "norm.bias", "head.kernel", "loss"}) {
    INFO(name);
    check_numbers(together.at(name), whole.at(name));
  }
  check_numbers(whole.at("norm.var"), {0.5 + 5 / 2.0, 0.5 + 500 / 2.0});
  check_numbers(apart.at("norm.var"), {0.5 + 1 / 2.0, 0.5 + 100 / 2.0});
}

TEST_CASE("a step whose statistics overflow is refused, although its loss is finite", "[layers][step]") {
  Network net = normalised_network(Mesh({{"devices", 1}}), {{}, 0.5});
  const Feed feed{{"inputs", {1e200, 1, -1e200, 3}}, {"mask", {1, 1}}, {"targets", {0, 1}}, {"rows", {0, 0}}};
  const Feed found = step_of(net, {2, 1}, feed);
  CHECK(std::isfinite(found.at("loss").front()));
  CHECK(found.at("norm.mean") == Numbers{0, 0});
  CHECK(found.at("norm.var") == Numbers{1, 1});
  CHECK(found.at("head.kernel") == Numbers{1, 0, 0, 1});
}

TEST_CASE("a norm whose parameters are all frozen uses its running statistics and keeps them", "[layers][step]") {
  Network net = normalised_network(Mesh({{"devices", 1}}), {{}, 0.5});
  optimizers::ParameterGroup frozen;
  frozen.parameters = {{"norm.*"}};
  frozen.freeze = true;
  net.optimizer.groups = {frozen};
  const Feed feed{
      {"inputs", {1, 10, 3, 30}}, {"mask", {1, 1}}, {"targets", {0, 1}}, {"rows", {0, 0}}, {"norm.mean", {7, 8}}};
  const Feed found = step_of(net, {2, 1}, feed);
  CHECK(found.at("loss").front() > 0);
  CHECK(!found.contains("norm.mean"));  // no update
}

TEST_CASE("batch_norm refuses axes over which the batch is not sharded", "[layers]") {
  Network net = normalised_network(Mesh({{"replicas", 2}, {"shards", 2}}), {{{"shard"}}});
  CHECK(refusal(net, one_pair, labels) ==
        "norm has statistics over the axis 'shard', over which the batch is not sharded | the axes of the batch are "
        "replicas, shards");
  net.layers.front().kind = layers::BatchNorm{{{"replicas"}}};
  net.data_axes = AxisSet::of(1);
  CHECK(
      refusal(net, one_pair, labels) ==
      "norm has statistics over the axis 'replicas', over which the batch is not sharded | devices along it divide "
      "layers (parallelism.tensor), and have the same examples and equal statistics; the axes of the batch are shards");
}
