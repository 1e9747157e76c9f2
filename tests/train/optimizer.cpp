// Optimizers against sequences worked out by hand from Optax's definitions.
#include "core/train/optimizer.h"

#include <cmath>

#include "core/graph/check.h"
#include "tests/catch.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// One parameter w[1], whose gradient is fed.
Program program_of(const spec::OptimizerSpec& optimizer, DType dtype) {
  Program program;
  Builder b(program, all_ops());
  const Type type{dtype, {1}, {}};
  const std::vector<Value> w{b.input(Group::params, "w", type)};
  std::vector<std::vector<Value>> slots;
  for (const std::string& kind : train::slot_kinds(optimizer)) {
    slots.push_back({b.input(Group::state, kind + "/w", type)});
  }
  const std::vector<Value> g{b.input(Group::batch, "g", type)};
  const Value step = b.input(Group::hyper, "step", {DType::i64, {}, {}});
  const Value rate = b.input(Group::hyper, "rate", {dtype, {}, {}});
  const train::Update update = train::optimizer_update(b, optimizer, w, g, slots, step, rate);
  program.inputs.front().next = update.parameters.front();
  for (std::size_t k = 0; k < slots.size(); ++k) program.inputs[1 + k].next = update.slots[k].front();
  check(program);
  return program;
}

// w after each gradient, from `w`.
Numbers follow(const spec::OptimizerSpec& optimizer, double w, const Numbers& gradients, DType dtype = DType::f64) {
  const Program program = program_of(optimizer, dtype);
  Feed feed{{"w", {w}}};
  Numbers path;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    feed["g"] = {gradients[i]};
    feed["step"] = {static_cast<double>(i + 1)};
    feed["rate"] = {optimizer.learning_rate};
    for (const auto& [name, value] : run(program, feed)) feed[name] = value;
    path.push_back(feed["w"].front());
  }
  return path;
}

void check_path(const Numbers& path, const Numbers& expected) {
  REQUIRE(path.size() == expected.size());
  for (std::size_t i = 0; i < path.size(); ++i) CHECK(path[i] == Approx(expected[i]).epsilon(1e-12).margin(1e-14));
}

}  // namespace

TEST_CASE("sgd descends; momentum keeps a trace; nesterov looks ahead by it", "[train]") {
  check_path(follow({spec::Sgd{}, 0.1, {}, {}}, 1.0, {1, -2}), {0.9, 1.1});
  // traces 1, 1.5, -1.25
  check_path(follow({spec::Sgd{0.5, false}, 0.1, {}, {}}, 1.0, {1, 1, -2}), {0.9, 0.75, 0.875});
  // directions 1 + 0.5, 1 + 0.75, -2 - 0.625
  check_path(follow({spec::Sgd{0.5, true}, 0.1, {}, {}}, 1.0, {1, 1, -2}), {0.85, 0.675, 0.9375});
}

TEST_CASE("adam corrects both moments for their start at zero", "[train]") {
  const spec::OptimizerSpec adam{spec::Adam{0.5, 0.75, 0.0}, 0.1, {}, {}};
  // mu 0.5, -0.75; corrected 1, -1. nu 0.25, 1.1875; corrected 1, 1.1875 / 0.4375.
  check_path(follow(adam, 1.0, {1, -2}), {0.9, 0.9 + 0.1 / std::sqrt(1.1875 / 0.4375)});
  // eps stands outside the root.
  check_path(follow({spec::Adam{0.5, 0.75, 1.0}, 0.1, {}, {}}, 1.0, {1}), {0.95});
}

TEST_CASE("adamw adds the weight itself to adam's direction, not to the gradient", "[train]") {
  const spec::OptimizerSpec adamw{spec::AdamW{0.5, 0.75, 0.0, 0.2}, 0.1, {}, {}};
  const double second = 0.88 - 0.1 * (-1 / std::sqrt(1.1875 / 0.4375) + 0.2 * 0.88);
  check_path(follow(adamw, 1.0, {1, -2}), {0.88, second});
}

TEST_CASE("under a constant gradient adam moves by the rate at every step, in single precision too", "[train]") {
  const Numbers path = follow({spec::Adam{0.9, 0.999, 0.0}, 0.25, {}, {}}, 0.0, Numbers(20, 3.0), DType::f32);
  for (std::size_t i = 0; i < path.size(); ++i) {
    CHECK(path[i] == Approx(-0.25 * static_cast<double>(i + 1)).epsilon(1e-6));
  }
}

TEST_CASE("a decay of zero keeps no past", "[train]") {
  check_path(follow({spec::Adam{0.0, 0.0, 0.0}, 0.5, {}, {}}, 0.0, {3, -7}), {-0.5, 0.0});
}

TEST_CASE("each rule names its slots", "[train]") {
  CHECK(train::slot_kinds({spec::Sgd{}, 0.1, {}, {}}).empty());
  CHECK(train::slot_kinds({spec::Sgd{0.9, false}, 0.1, {}, {}}) == std::vector<std::string>{"sgd.trace"});
  CHECK(train::slot_kinds({spec::Adam{}, 0.1, {}, {}}) == std::vector<std::string>{"adam.mu", "adam.nu"});
  CHECK(train::slot_kinds({spec::AdamW{}, 0.1, {}, {}}) == std::vector<std::string>{"adamw.mu", "adamw.nu"});
}

TEST_CASE("base_batch_size scales the rate linearly with the batch", "[train]") {
  CHECK(train::scaled_learning_rate({spec::Sgd{}, 0.1, {}, {}}, 256) == 0.1);
  CHECK(train::scaled_learning_rate({spec::Sgd{}, 0.1, 32, {}}, 256) == Approx(0.8));
}
