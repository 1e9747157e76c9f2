// Whole runs: what they learn, that the cut into devices and microbatches does not change it, and how they end.
#include "core/train/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/graph/text.h"
#include "core/runtime/cpu/plan.h"
#include "core/runtime/interpreter.h"
#include "core/setup/plan.h"
#include "core/setup/values.h"
#include "tests/catch.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

std::vector<double> losses_of(const Trained& trained) {
  std::vector<double> values;
  for (const run::Logged& logged : trained.of<run::Logged>()) values.push_back(logged.measures.front().second);
  return values;
}

void check_near(const std::vector<double>& a, const std::vector<double>& b, double margin) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).margin(margin));
}

void check_near(const run::Tensors& a, const run::Tensors& b, double margin) {
  REQUIRE(a.size() == b.size());
  for (const auto& [name, tensor] : a) {
    INFO(name);
    check_near(to_doubles(tensor), to_doubles(b.at(name)), margin);
  }
}

std::vector<double> device_values(Module& module, const std::string& name) {
  std::vector<double> values;
  for (std::int64_t d = 0; d < module.program(0).mesh.devices(); ++d) {
    values.push_back(setup::to_doubles(module, module.input(name), d).front());
  }
  return values;
}

}  // namespace

TEST_CASE("linear_regression.yaml learns the true values, and its logged losses fall", "[train]") {
  const Trained trained = train_setup(setup_of_config("linear_regression.yaml", {any_backend()}));
  CHECK(trained.ended.status == "done");
  CHECK(trained.ended.steps == 50);
  CHECK(trained.ended.epochs == 50);
  CHECK(trained.ended.examples_seen == 50 * 800);
  REQUIRE(trained.result().comparisons.size() == 2);
  for (const run::Comparison& comparison : trained.result().comparisons) {
    INFO(comparison.parameter);
    check_near(comparison.learned, comparison.truth, 0.05);
  }
  const std::vector<double> falling = losses_of(trained);
  CHECK(falling.size() == 6);  // steps 1, 10, 20, ... 50
  for (std::size_t i = 1; i < falling.size(); ++i) CHECK(falling[i] < falling[i - 1]);
}

TEST_CASE("gradient_averaging.yaml gives the update that was computed by hand, on each of the 4 devices", "[train]") {
  const setup::Setup setup = setup_of_config("gradient_averaging.yaml", {any_backend()});
  train::SessionOptions options;
  options.verify_replicas = true;
  std::vector<double> weights, biases;
  options.between_steps = [&](Module& module, std::int64_t) {
    weights = device_values(module, "dense_0.kernel");
    biases = device_values(module, "dense_0.bias");
  };
  const Trained trained = train_setup(setup, options);
  REQUIRE(weights.size() == 4);
  for (std::size_t d = 0; d < 4; ++d) {
    CHECK(weights[d] == Approx(2.625).epsilon(1e-6));
    CHECK(biases[d] == Approx(0.16).epsilon(1e-6));
    CHECK(weights[d] == weights[0]);
    CHECK(biases[d] == biases[0]);
  }
  const run::Comparison& kernel = trained.result().comparisons.back();
  CHECK(kernel.parameter == "dense_0.kernel");
  CHECK(kernel.initial == std::vector<double>{1.0});
  CHECK(kernel.learned == std::vector<double>{weights[0]});
  // mean((2x + 0.5 - x)^2) over x = 0 .. 15, and the norm of (-162.5, -16)
  REQUIRE(trained.of<run::Logged>().size() == 1);
  CHECK(losses_of(trained).front() == Approx(85.25));
  CHECK(trained.of<run::Logged>().front().grad_norm == Approx(std::hypot(162.5, 16.0)));
}

TEST_CASE("metrics of an epoch are made of its sums, whatever its batches, devices and microbatches", "[train]") {
  const std::string metrics = "metrics=[accuracy, recall, f1: {average: none}, perplexity]";
  // Without learning, the epoch's means are those of the parameters that training begins with.
  const std::vector<std::string> set = {any_backend(), metrics, "optimizer={sgd: {}, learning_rate: 0}",
                                        "train.duration=1 epoch"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), set.begin(), set.end());
    const Trained trained = train_setup(setup_of_text(small_images, more));
    REQUIRE(trained.of<run::EpochEnded>().size() == 1);
    return trained.of<run::EpochEnded>().front().measures;
  };
  const run::Measures many = with({}), one = with({"data.batch_size=48", "mesh.axes={devices: 1}"}),
                      cut = with({"data.microbatches=2"});
  std::vector<std::string> names;
  for (std::size_t i = 0; i < many.size(); ++i) {
    names.push_back(many[i].first);
    INFO(names.back());
    CHECK(many[i].second == Approx(one[i].second).epsilon(1e-5));
    CHECK(many[i].second == Approx(cut[i].second).epsilon(1e-5));
  }
  CHECK(names == std::vector<std::string>{"loss", "accuracy", "recall", "f1_0", "f1_1", "f1_2", "perplexity"});
  CHECK(many.back().second == Approx(std::exp(many.front().second)).epsilon(1e-5));
}

TEST_CASE("R² is right however far the targets lie from zero, on any devices", "[train]") {
  std::string inputs, targets;
  double sum = 0, squares = 0, errors = 0;
  const int count = 48;
  for (int i = 0; i < count; ++i) {
    const double x = i % 7 - 3, t = 20000 + x + 0.25 * (i % 5);  // which f32 holds
    inputs += (i > 0 ? ", [" : "[") + std::to_string(x) + "]";
    targets += (i > 0 ? ", [" : "[") + std::to_string(t) + "]";
    sum += t - 20000;
    squares += (t - 20000) * (t - 20000);
    errors += (t - 20000 - x) * (t - 20000 - x);
  }
  const double expected = 1 - errors / (squares - sum * sum / count);
  const auto text = [&](const std::string& wanted) {
    return "mesh: {axes: {a: 1}}\ndata: {source: {values: {inputs: [" + inputs + "], targets: [" + wanted +
           "]}}, batch_size: 24}\nmodel: {layers: [dense: 1], init: {values: {dense_0: {kernel: [[1.0]], bias: "
           "[20000.0]}}}}\nloss: mean_squared_error\nmetrics: [r2]\noptimizer: {sgd: {}, learning_rate: 0.0}\n"
           "train: {duration: 1 epoch, log_every: 1 step}\n";
  };
  for (const char* devices : {"1", "4"}) {
    for (const char* microbatches : {"1", "3"}) {
      const Trained trained = train_setup(setup_of_text(
          text(targets), {std::string("mesh.axes.a=") + devices, std::string("data.microbatches=") + microbatches}));
      CHECK(trained.of<run::EpochEnded>().back().measures.back().second == Approx(expected).epsilon(1e-6));
    }
  }
  // Equal targets have no variance, whatever rounding leaves of their sums.
  std::string equal = "[20000.3]";
  for (int i = 1; i < count; ++i) equal += ", [20000.3]";
  const Trained trained = train_setup(setup_of_text(text(equal)));
  CHECK(trained.of<run::EpochEnded>().back().measures.back().second == 0);
}

TEST_CASE("psum divided by the number of devices equals pmean", "[train]") {
  auto program = std::make_shared<const Program>(parse_program(R"(mesh data_parallel_axis=4
batch %x:f32[]{data_parallel_axis}
%sum = psum[axes={data_parallel_axis}] %x
%four = constant[dtype=f32, shape=[], value=4]
%divided = div %sum, %four
%mean = pmean[axes={data_parallel_axis}] %x
return divided = %divided
return mean = %mean
)",
                                                               "means.pmt", all_ops()));
  const std::unique_ptr<Module> module = make_backend(BackendKind::cpu, {.workers = 2})->load({{{"means", program}}});
  const float gradients[] = {-12.5F, -84.5F, -1.0F / 3, 0.1F};
  const std::span<std::byte> to = module->batch(0, 0, "x");
  std::copy_n(std::as_bytes(std::span(gradients)).begin(), to.size(), to.begin());
  module->submit(0, 0);
  const auto bytes = [&](const char* name) { return setup::bytes_of(*module, module->output(0, name)); };
  CHECK(bytes("divided") == bytes("mean"));
  CHECK(setup::to_doubles(*module, module->output(0, "mean")).front() == Approx((-12.5 - 84.5 - 1.0 / 3 + 0.1) / 4));
}

TEST_CASE("a masked, microbatched run equals the unsplit one", "[train]") {
  const std::vector<std::string> common = {any_backend(), "data.batch_size=10", "data.remainder=mask",
                                           "train.duration=10 steps"};
  std::vector<std::string> one = common, split = common;
  one.emplace_back("mesh.axes={a: 1}");
  split.insert(split.end(), {"mesh.axes=[{a: 2}, {b: 3}]", "data.microbatches=3"});
  const Trained whole = train_setup(setup_of_text(small_images, one));
  const Trained parts = train_setup(setup_of_text(small_images, split));
  check_near(losses_of(parts), losses_of(whole), 1e-5);
  check_near(parts.parameters, whole.parameters, 2e-5);
  CHECK(parts.ended.examples_seen == 2 * 48);
  CHECK(whole.ended.examples_seen == 2 * 48);
}

TEST_CASE("a batch spread over 1, 2, 4 or 8 devices gives the same losses, dropout and microbatches included",
          "[train]") {
  const std::string with_dropout = "model.layers=[flatten, {dense: 12}, tanh, {dropout: 0.4}, {dense: 3}]";
  for (const std::string& model : {std::string("name=convolutional"), with_dropout}) {
    INFO(model);
    const auto with = [&](const std::string& devices, const std::string& microbatches) {
      return train_setup(setup_of_text(small_images, {model, "mesh.axes={a: " + devices + "}",
                                                      "data.microbatches=" + microbatches, "train.duration=6 steps"}));
    };
    const Trained one = with("1", "1");
    CHECK(losses_of(one).size() == 6);
    for (const char* devices : {"2", "4", "8"}) {
      INFO(devices << " devices");
      const Trained more = with(devices, devices == std::string("8") ? "1" : "2");
      check_near(losses_of(more), losses_of(one), 1e-5);
      check_near(more.parameters, one.parameters, 2e-5);
    }
  }
}

TEST_CASE("evaluation counts every example once, whatever the mesh and the remainder", "[train]") {
  const std::string backend = any_backend();
  const auto evaluated = [&](std::vector<std::string> set) {
    set.push_back(backend);
    set.emplace_back("train.duration=1 step");
    set.emplace_back("optimizer.learning_rate=1.0e-30");  // leaves the parameters as they are
    const Trained trained = train_setup(setup_of_text(small_images, std::move(set)));
    REQUIRE(trained.of<run::Evaluated>().size() == 1);
    return trained.of<run::Evaluated>().front();
  };
  const run::Evaluated one = evaluated({"mesh.axes={a: 1}", "data.batch_size=1"});
  CHECK(one.examples == 21);
  for (const std::vector<std::string>& set : std::vector<std::vector<std::string>>{
           {"mesh.axes={a: 4}", "data.batch_size=16"},
           {"mesh.axes={a: 2}", "data.batch_size=48"},
           {"mesh.axes=[{a: 2}, {b: 3}]", "data.batch_size=6"},
           {"mesh.axes={a: 13}", "data.batch_size=10", "data.remainder=mask", "data.microbatches=3"}}) {
    INFO(set[0] << " " << set[1]);
    const run::Evaluated many = evaluated(set);
    CHECK(many.examples == 21);
    CHECK(many.split == "test");
    REQUIRE(many.measures.size() == 2);
    CHECK(many.measures[0].second == Approx(one.measures[0].second).epsilon(1e-5));
    CHECK(many.measures[1].second == Approx(one.measures[1].second).epsilon(1e-12));  // a count of 21
    CHECK(std::abs(many.measures[1].second * 21 - std::round(many.measures[1].second * 21)) < 1e-9);
  }
}

TEST_CASE("an exploding run halts with the parameters of its last good step", "[train]") {
  const std::vector<std::string> exploding = {any_backend(), "optimizer.learning_rate=30", "train.duration=4 epochs",
                                              "data.batch_size=80"};
  for (const char* log_every : {"1 step", "7 steps", "never"}) {
    INFO("log_every " << log_every);
    std::vector<std::string> set = exploding;
    set.push_back(std::string("train.log_every=") + log_every);
    const setup::Setup setup = setup_of_config("linear_regression.yaml", set);
    const Trained trained = train_setup(setup);
    REQUIRE(trained.ended.status == "stopped");
    CHECK(trained.ended.reason == "guard");
    CHECK(trained.ended.exit_status == 5);
    const std::int64_t good = trained.ended.steps;
    CHECK(good > 5);
    CHECK(good < 20);
    CHECK(to_doubles(trained.state.at("step")).front() == static_cast<double>(good));
    CHECK(trained.of<run::Warned>().back().text.starts_with(
        "step " + std::to_string(good + 1) +
        ": the loss, the gradient or the update is not finite; stopped with the parameters after step " +
        std::to_string(good) +
        " (train.on_nonfinite: halt); replayed on device 0, the first result that is not finite "));
    CHECK(trained.of<run::Warned>().back().text.ends_with(
        "; a lower optimizer.learning_rate (" + fmt::format("{:.3g}", setup.optimizer().learning_rate) +
        " at the update before), a schedule with a warm-up or optimizer.clip_by_global_norm: 1.0 may help"));
    CHECK(trained.of<run::Logged>().back().step == good + 1);
    CHECK(trained.of<run::EpochEnded>().back().step <= good + 1);
    train::SessionOptions options;
    options.max_steps = good;
    const Trained up_to = train_setup(setup, options);
    CHECK(up_to.ended.reason == "max_steps");
    CHECK(up_to.parameters == trained.parameters);
  }
}

TEST_CASE("nothing is evaluated after a bad step, whenever it is noticed", "[train]") {
  std::string text = small_images;
  text.replace(text.find("eval_every: 1 epoch"), 19, "eval_every: 2 steps");
  text.replace(text.find("log_every: 1 step"), 17, "log_every: never");
  const Trained trained =
      train_setup(setup_of_text(text, {any_backend(), "optimizer.learning_rate=1.0e+38", "train.duration=9 steps"}));
  REQUIRE(trained.ended.reason == "guard");
  const std::int64_t good = trained.ended.steps;
  REQUIRE(good < 8);
  for (const run::Evaluated& evaluated : trained.of<run::Evaluated>()) CHECK(evaluated.step <= good);
  // The run ends at the first step at which anything would have looked.
  CHECK(trained.of<run::Progressed>().back().step <= good + 2);
  CHECK(trained.of<run::Logged>().back().step == good + 1);
}

TEST_CASE("layers may be called like what a step keeps", "[train]") {
  const std::vector<std::string> to_names = {
      "model.layers=[{name: dropout, conv: {features: 3, kernel_size: [3, 3]}}, {name: kernel, dropout: {rate: 0.5}}, "
      "flatten, {name: epoch, dense: {features: 3}}]"};
  const std::vector<std::string> plain = {
      "model.layers=[{name: x, conv: {features: 3, kernel_size: [3, 3]}}, {name: kernel, dropout: {rate: 0.5}}, "
      "flatten, {name: y, dense: {features: 3}}]"};
  const Trained named = train_setup(setup_of_text(small_images, to_names));
  CHECK(named.ended.status == "done");
  for (const char* name : {"epoch.kernel", "epoch.bias", "dropout.kernel", "dropout.bias"}) {
    INFO(name);
    const std::vector<double> values = to_doubles(named.parameters.at(name));
    CHECK(std::any_of(values.begin(), values.end(), [](double value) { return value != 0; }));
  }
  CHECK(named.ended.steps == train_setup(setup_of_text(small_images, plain)).ended.steps);
}

TEST_CASE("true values stand beside those of one dense layer, and of no other model", "[train]") {
  const auto truths = [](const char* layers) {
    const Trained trained = train_setup(
        setup_of_config("linear_regression.yaml", {"train.duration=2 steps", std::string("model.layers=") + layers}));
    std::size_t count = 0;
    for (const run::Comparison& comparison : trained.result().comparisons) count += comparison.truth.empty() ? 0U : 1U;
    return count;
  };
  CHECK(truths("[{dense: 1}]") == 2);
  CHECK(truths("[{dense: 3}, tanh, {dense: 1}]") == 0);
  CHECK(truths("[{dense: 1}, tanh]") == 0);
  CHECK(truths("[{dense: 1}, {dense: 1}]") == 0);
}

TEST_CASE("neither the mean gradient nor the new parameters are kept beside what they come from", "[train]") {
  for (const char* rule : {"sgd: {}", "sgd: {momentum: 0.9}", "adam: {}", "adam: {b1: 0.9, b2: 0.5}"}) {
    INFO(rule);
    const setup::Setup setup =
        setup_of_text(small_images, {"model.layers=[flatten, {dense: {features: 512, use_bias: false}}, {dense: 3}]",
                                     "optimizer={" + std::string(rule) + ", learning_rate: 0.01}"});
    // A bucket of both layers.
    const auto size = static_cast<double>((36 * 512 + 512 * 3 + 64) * sizeof(float));
    double copies = 1;  // the parameter
    for (const Variable& variable : variables_of(*setup.training)) {
      copies += variable.name.ends_with("/dense_0.kernel") ? 1 : 0;
    }
    // The sum of gradients, two norms of each 64 elements, and a byte for each element of the update that is checked.
    const cpu::Plan plan = cpu::make_plan(setup.training);
    CHECK(static_cast<double>(plan.persistent.shared + plan.transient.shared) <=
          size * (copies + 1.25 + 3.0 / 64) + 512);
  }
}

TEST_CASE("the report's measures of train are means over the epoch, whatever the interval of lines is", "[train]") {
  // Three steps to an epoch: runs that end with one, and within one.
  for (const char* const steps : {"6 steps", "7 steps"}) {
    std::vector<run::Measures> found;
    for (const char* const log_every : {"never", "1 steps", "4 steps", "6 steps", "7 steps"}) {
      INFO(steps << ", log_every " << log_every);
      const Trained trained = train_setup(setup_of_text(
          small_images, {std::string("train.duration=") + steps, std::string("train.log_every=") + log_every}));
      const auto& [split, measures] = trained.result().final_measures.front();
      CHECK(split == "train");
      CHECK(measures == trained.of<run::EpochEnded>().back().measures);
      found.push_back(measures);
    }
    for (const run::Measures& measures : found) CHECK(measures == found.front());
  }
}
