// Training in bfloat16 beside Flax: the cases that make_mixed_fixtures.py wrote.
//
// Both cast the operands of products and the activations to bf16 and keep parameters, Adam and the loss in f32. What
// differs are sums. Here a bias is added to the sum of a product before that is rounded, and the gradients of
// parameters and the logits are not rounded. Flax rounds the sum before it adds the bias, and the gradients and the
// logits too. The fixtures also have the loss that JAX gives with the sums of pmaptrain. To that one a run is nearer
// than f32 is; to Flax's own f32 may be as near.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/bf16.h"
#include "core/graph/check.h"
#include "core/ops/all.h"
#include "core/passes/widen.h"
#include "core/setup/make_setup.h"
#include "core/setup/values.h"
#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/runtime/single.h"
#include "tests/session_run.h"
#include "tests/train/steps.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

const std::string cases_of_mixed = "tests/parity/mixed/";

setup::Setup setup_of(const std::string& name, std::vector<std::string> set = {}) {
  spec::Overrides overrides;
  overrides.set = std::move(set);
  return setup::make_setup(spec::load(cases_of_mixed + name + "/config.yaml", overrides));
}

run::Tensors tensors_of(const std::string& name, const std::string& file) {
  return run::read_safetensors(cases_of_mixed + name + "/" + file + ".safetensors");
}

std::vector<double> expected_of(const std::string& name, const std::string& measure) {
  return nlohmann::json::parse(read_text(cases_of_mixed + name + "/expected.json"))
      .at(measure)
      .get<std::vector<double>>();
}

std::vector<double> losses_of(const Trained& trained) {
  std::vector<double> values;
  for (const run::Logged& logged : trained.of<run::Logged>()) values.push_back(logged.measures.front().second);
  return values;
}

double apart(const std::vector<double>& one, const std::vector<double>& other) {
  REQUIRE(one.size() == other.size());
  double most = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    const double each = std::abs(one[i] - other[i]);
    most = each <= most ? most : each;  // a NaN stays
  }
  return most;
}

double largest(const std::vector<double>& values) { return apart(values, std::vector<double>(values.size(), 0.0)); }

// What the layers give for the batch of the first step, under the parameters before it or after it.
std::vector<double> logits(const setup::Setup& setup, std::int64_t steps) {
  const std::unique_ptr<Module> trained = load_step(setup, {.workers = 1});
  if (steps > 0) take_steps(*trained, steps);
  const model::Model& model = setup.model;
  Program program;
  Builder b(program, all_ops());
  const std::int64_t rows = setup.batch.global;
  Shape shape = model.input.shape;
  shape.insert(shape.begin(), rows);
  std::vector<Value> parameters;
  for (const model::Parameter& parameter : model.parameters) {
    parameters.push_back(b.input(Group::params, parameter.name, {model.dtype, parameter.shape, {}}));
  }
  const Value x = b.input(Group::batch, "inputs", {model.input.dtype, shape, {}});
  b.output("logits", model::apply(b, model, {x, parameters}));
  program = widen(std::move(program));
  test::Single single(std::make_shared<const Program>(std::move(program)), {.workers = 1});
  for (const model::Parameter& parameter : model.parameters) {
    single.set(parameter.name, setup::bytes_of(*trained, trained->input(parameter.name)));
  }
  single.set("inputs", trained->batch(0, 0, "inputs"));
  single.run();
  return to_doubles({DType::f32, {rows, model.output.front()}, single.output("logits")});
}

// By parameter; after one step of plain SGD at a rate of 1.
std::map<std::string, std::vector<double>> gradients(const std::string& name, std::vector<std::string> set) {
  set.insert(set.end(), {"optimizer.sgd={}", "optimizer.learning_rate=1.0"});
  const setup::Setup setup = setup_of(name, set);
  const std::unique_ptr<Module> module = load_step(setup, {.workers = 1});
  std::map<std::string, std::vector<double>> found;
  for (const model::Parameter& parameter : setup.model.parameters) {
    found[parameter.name] = setup::to_doubles(*module, module->input(parameter.name));
  }
  take_steps(*module);
  for (auto& [parameter, values] : found) {
    const std::vector<double> after = setup::to_doubles(*module, module->input(parameter));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] -= after[i];
  }
  return found;
}

}  // namespace

namespace {

const std::vector<std::string> names = {"mlp", "mlp_in_part", "cnn"};
// Of norms only losses are compared: gradients of what is before a norm are sums that cancel.
const std::vector<std::string> names_with_norms = {"mlp", "mlp_in_part", "cnn", "norms", "sequence", "batch_norm"};

// Of the loss of any step: relative where the loss is above 1.
double apart_in_loss(const std::vector<double>& ours, const std::vector<double>& expected) {
  std::vector<double> scaled = ours, to = expected;
  for (std::size_t i = 0; i < std::min(ours.size(), expected.size()); ++i) {
    scaled[i] /= std::max(1.0, expected[i]);
    to[i] /= std::max(1.0, expected[i]);
  }
  return apart(scaled, to);
}

constexpr double flax_tolerance = 1e-2;
// To JAX with the same arithmetic.
constexpr double own_tolerance = 1e-3;

}  // namespace

TEST_CASE("the loss of mixed precision is Flax's over 20 steps, on 1 and 4 devices and with microbatches", "[parity]") {
  for (const std::string& name : names_with_norms) {
    const std::vector<double> flax = expected_of(name, "loss"), own = expected_of(name, "float32_sums_loss");
    REQUIRE(flax.size() == 20);
    for (const char* const devices : {"1", "4"}) {
      for (const char* const microbatches : {"1", "2"}) {
        if (name == "batch_norm" && microbatches[0] == '2') continue;  // its statistics are of a microbatch
        INFO(name << " on " << devices << " devices with " << microbatches << " microbatches");
        const std::vector<double> ours = losses_of(train_setup(setup_of(
            name, {std::string("mesh.axes.devices=") + devices, std::string("data.microbatches=") + microbatches})));
        CHECK(apart_in_loss(ours, flax) <= flax_tolerance);
        CHECK(apart_in_loss(ours, own) <= own_tolerance);
      }
    }
  }
}

// To Flax's loss it is about as near as mixed precision is: that one alone would not notice it.
TEST_CASE("a run that stays in float32 is noticed", "[parity]") {
  for (const std::string& name : names) {
    INFO(name);
    const std::vector<double> full = losses_of(train_setup(setup_of(name, {"precision=float32"})));
    CHECK(apart_in_loss(full, expected_of(name, "float32_loss")) <= 1e-5);
    const std::vector<double> own = expected_of(name, "float32_sums_loss");
    CHECK(apart_in_loss(full, own) > apart_in_loss(losses_of(train_setup(setup_of(name))), own));
  }
}

TEST_CASE("the first logits of mixed precision, rounded to bf16, are Flax's bits", "[parity]") {
  for (const std::string& name : names) {
    const std::vector<double> flax = to_doubles(tensors_of(name, "logits").at("step_0"));
    const auto equal = [&](const std::vector<double>& found) {
      REQUIRE(found.size() == flax.size());
      std::size_t count = 0;
      for (std::size_t i = 0; i < flax.size(); ++i) {
        count += static_cast<double>(static_cast<float>(bf16(found[i]))) == flax[i] ? 1U : 0U;
      }
      return count;
    };
    INFO(name);
    // The biases are 0 before the first step, so it does not matter when they are added.
    CHECK(equal(logits(setup_of(name), 0)) == flax.size());
    CHECK(equal(logits(setup_of(name, {"precision=float32"}), 0)) < flax.size() / 2);
  }
}

TEST_CASE("the logits of mixed precision after the first step are Flax's to the precision of bf16", "[parity]") {
  for (const std::string& name : names) {
    const std::vector<double> flax = to_doubles(tensors_of(name, "logits").at("step_1"));
    INFO(name);
    CHECK(apart(logits(setup_of(name), 1), flax) <= std::ldexp(largest(flax), -6));
  }
}

TEST_CASE("the first gradients of mixed precision are Flax's, and those of float32, to the precision of bf16",
          "[parity]") {
  for (const std::string& name : names) {
    const run::Tensors flax = tensors_of(name, "gradients");
    const auto mixed = gradients(name, {}), full = gradients(name, {"precision=float32"});
    CHECK(mixed.size() == flax.size());
    for (const auto& [parameter, found] : mixed) {
      INFO(name << ' ' << parameter);
      const std::vector<double> expected = to_doubles(flax.at(parameter));
      const double bound = std::ldexp(largest(expected), -6);
      CHECK(apart(found, expected) <= bound);
      CHECK(apart(found, full.at(parameter)) <= bound);
      CHECK(found != full.at(parameter));
    }
  }
}
