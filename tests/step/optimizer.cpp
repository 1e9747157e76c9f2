// Optimizers against sequences worked out by hand from Optax's definitions.
#include "core/step/optimizer.h"

#include <algorithm>
#include <cmath>

#include "core/graph/check.h"
#include "core/optimizers/adadelta.h"
#include "core/optimizers/adagrad.h"
#include "core/optimizers/adam.h"
#include "core/optimizers/adamw.h"
#include "core/optimizers/lion.h"
#include "core/optimizers/nadam.h"
#include "core/optimizers/rmsprop.h"
#include "core/optimizers/sgd.h"
#include "core/spec/keys.h"
#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// One parameter w[1], whose gradient is fed.
Program program_of(const step::Optimizer& optimizer, DType dtype) {
  const optimizers::Options& spec = optimizer.options;
  Program program;
  Builder b(program, all_ops());
  const Type type{dtype, {1}, {}};
  const std::vector<Value> w{b.input(Group::params, "w", type)};
  std::vector<std::vector<Value>> slots;
  for (const optimizers::SlotKind& kind : spec.rule->slots()) {
    slots.push_back({b.input(Group::state, kind.name + "/w", type)});
  }
  const std::vector<Value> g{b.input(Group::batch, "g", type)};
  const Value step = b.input(Group::hyper, "step", {DType::i64, {}, {}});
  const std::vector<equations::Number> declared = step::optimizer_numbers(optimizer, dtype);
  const equations::Numbers numbers(declared, equations::declare_numbers(b, declared));
  const Value rate = numbers["learning_rate"];
  const step::Update update =
      step::optimizer_update(b, optimizer, numbers, std::vector<std::size_t>{0}, w, g, slots, step, rate);
  program.inputs.front().next = update.parameters.front();
  for (std::size_t k = 0; k < slots.size(); ++k) program.inputs[1 + k].next = update.slots[k].front();
  check(program);
  return program;
}

// w after each gradient, from `w`.
Numbers follow(const optimizers::Options& spec, double w, const Numbers& gradients, DType dtype = DType::f64) {
  const double decay = spec.rule->weight_decay().value_or(0.0);
  const step::ParameterOptions options{{"", 1.0}, {decay != 0.0 ? "weight_decay" : "", decay, dtype}, true};
  const step::Optimizer optimizer{spec, spec.learning_rate.value, {}, {options}};
  const Program program = program_of(optimizer, dtype);
  Feed feed{{"w", {w}}};
  add_numbers(feed, step::optimizer_numbers(optimizer, dtype));
  Numbers path;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    feed["g"] = {gradients[i]};
    feed["step"] = {static_cast<double>(i + 1)};
    for (const auto& [name, value] : results_of(program, feed)) feed[name] = value;
    path.push_back(feed["w"].front());
  }
  return path;
}

// The optimizer of a config that has this one.
optimizers::Options loaded_optimizer(const std::string& optimizer) {
  const std::string config =
      "data: {source: {values: {inputs: [[1]], targets: [[1]]}}, batch_size: 1}\nmodel: {layers: [dense: 1]}\n"
      "loss: mean_squared_error\ntrain: {duration: 1 step}\noptimizer: ";
  return spec::load_text(config + optimizer + "\n", "c.yaml", "/base", {}).spec.optimizer;
}

void check_path(const Numbers& path, const Numbers& expected) {
  REQUIRE(path.size() == expected.size());
  for (std::size_t i = 0; i < path.size(); ++i) CHECK(path[i] == Approx(expected[i]).epsilon(1e-12).margin(1e-14));
}

}  // namespace

TEST_CASE("sgd descends; momentum keeps a trace; nesterov looks ahead by it", "[step]") {
  check_path(follow({optimizers::Sgd{}, 0.1, {}, {}}, 1.0, {1, -2}), {0.9, 1.1});
  // traces 1, 1.5, -1.25
  check_path(follow({optimizers::Sgd{0.5, false}, 0.1, {}, {}}, 1.0, {1, 1, -2}), {0.9, 0.75, 0.875});
  // directions 1 + 0.5, 1 + 0.75, -2 - 0.625
  check_path(follow({optimizers::Sgd{0.5, true}, 0.1, {}, {}}, 1.0, {1, 1, -2}), {0.85, 0.675, 0.9375});
}

TEST_CASE("adam corrects both moments for their start at zero", "[step]") {
  const optimizers::Options adam{optimizers::Adam{0.5, 0.75, 0.0}, 0.1, {}, {}};
  // mu 0.5, -0.75; corrected 1, -1. nu 0.25, 1.1875; corrected 1, 1.1875 / 0.4375.
  check_path(follow(adam, 1.0, {1, -2}), {0.9, 0.9 + 0.1 / std::sqrt(1.1875 / 0.4375)});
  // eps stands outside the root.
  check_path(follow({optimizers::Adam{0.5, 0.75, 1.0}, 0.1, {}, {}}, 1.0, {1}), {0.95});
}

TEST_CASE("adamw adds the weight itself to adam's direction, not to the gradient", "[step]") {
  const optimizers::Options adamw{optimizers::AdamW{0.5, 0.75, 0.0, 0.2}, 0.1, {}, {}};
  const double second = 0.88 - 0.1 * (-1 / std::sqrt(1.1875 / 0.4375) + 0.2 * 0.88);
  check_path(follow(adamw, 1.0, {1, -2}), {0.88, second});
}

TEST_CASE("under a constant gradient adam moves by the rate at every step, in single precision too", "[step]") {
  const Numbers path = follow({optimizers::Adam{0.9, 0.999, 0.0}, 0.25, {}, {}}, 0.0, Numbers(20, 3.0), DType::f32);
  for (std::size_t i = 0; i < path.size(); ++i) {
    CHECK(path[i] == Approx(-0.25 * static_cast<double>(i + 1)).epsilon(1e-6));
  }
}

TEST_CASE("a decay of zero keeps no past", "[step]") {
  check_path(follow({optimizers::Adam{0.0, 0.0, 0.0}, 0.5, {}, {}}, 0.0, {3, -7}), {-0.5, 0.0});
}

TEST_CASE("each rule names its slots and what they begin with", "[step]") {
  const auto slots = [](const optimizers::Rule& rule) {
    std::vector<std::pair<std::string, double>> found;
    for (const optimizers::SlotKind& kind : rule->slots()) found.emplace_back(kind.name, kind.initial);
    return found;
  };
  using Slots = std::vector<std::pair<std::string, double>>;
  CHECK(slots(optimizers::Sgd{}).empty());
  CHECK(slots(optimizers::Sgd{0.9, false}) == Slots{{"sgd.trace", 0.0}});
  CHECK(slots(optimizers::Adam{}) == Slots{{"adam.mu", 0.0}, {"adam.nu", 0.0}});
  CHECK(slots(optimizers::AdamW{}) == Slots{{"adamw.mu", 0.0}, {"adamw.nu", 0.0}});
  CHECK(slots(optimizers::NAdam{}) == Slots{{"nadam.mu", 0.0}, {"nadam.nu", 0.0}});
  CHECK(slots(optimizers::RmsProp{}) == Slots{{"rmsprop.nu", 0.0}});
  CHECK(slots(optimizers::RmsProp{.initial_scale = 1.0, .centered = true, .momentum = 0.5}) ==
        Slots{{"rmsprop.nu", 1.0}, {"rmsprop.mu", 0.0}, {"rmsprop.trace", 0.0}});
  CHECK(slots(optimizers::AdaGrad{}) == Slots{{"adagrad.sum_of_squares", 0.1}});
  CHECK(slots(optimizers::Lion{}) == Slots{{"lion.mu", 0.0}});
  CHECK(slots(optimizers::AdaDelta{}) == Slots{{"adadelta.e_g", 0.0}, {"adadelta.e_x", 0.0}});
}

TEST_CASE("no update moves a parameter further than its rule says", "[step]") {
  // The squares of 1e18 are finite in f32, as slot_bound() demands.
  const std::vector<Numbers> courses = {Numbers(12, 1.0),
                                        {0, 0, 0, 1e18, 1e18, -1e18, 0, 0, 1},
                                        {1e-12, 1e-9, 1e-6, 1e-3, 1, 1e3, 1e6, 1e9, 1e12, 1e15, 1e18},
                                        {1e18, 1e15, 1e12, 1e9, 1e6, 1e3, 1, 1e-3, 1e-6, 1e-9},
                                        {1, -1, 1, -1, 1, -1, 1, -1},
                                        {1e-25, 1e-24, 1e-23, 1e-22, 1e-21, 1e-20, 1e-19}};
  constexpr double rate = 0.1;
  int bounded = 0;
  for (const spec::Key* const kind : spec::alternatives(*spec::find_key("optimizer"))) {
    const std::string name(kind->name());
    const optimizers::Options given = loaded_optimizer("{" + name + ": {}, learning_rate: 0.1}");
    const double decay = given.rule->weight_decay().value_or(0.0);
    for (const Numbers& course : courses) {
      double largest = 0;
      for (const double gradient : course) largest = std::max(largest, std::abs(gradient));
      const double bound = given.rule->largest_change({rate, decay, largest});
      if (!(bound < HUGE_VAL)) continue;
      ++bounded;
      double before = 0.5;
      for (const double after : follow(given, before, course, DType::f32)) {
        INFO(name << " from " << before << " to " << after);
        const double decayed = rate * decay * std::abs(before);
        CHECK(std::abs(after - before) <= (bound + decayed) * 1.001 + std::abs(before) * 1e-6);
        before = after;
      }
    }
  }
  CHECK(bounded >= 30);
}

TEST_CASE("base_batch_size scales the rate linearly with the batch", "[step]") {
  BatchPlan batch;
  batch.global = 256;
  const auto rate = [&](std::optional<std::int64_t> base) {
    return step::make_optimizer({optimizers::Sgd{}, 0.1, base, {}}, {}, batch, 1).learning_rate;
  };
  CHECK(rate({}) == 0.1);
  CHECK(rate(32) == Approx(0.8));
}
