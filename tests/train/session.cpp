// Whole runs: what they learn, that the cut into devices and microbatches does not change it, and how they end.
#include "core/train/session.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/graph/text.h"
#include "core/runtime/cpu/plan.h"
#include "core/runtime/interpreter.h"
#include "core/train/optimizer.h"
#include "core/train/start.h"
#include "core/train/values.h"
#include "tests/catch.h"
#include "tests/train/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

std::vector<double> losses(const Trained& trained) {
  std::vector<double> values;
  for (const train::Logged& logged : trained.of<train::Logged>()) values.push_back(logged.measures.front().second);
  return values;
}

void check_near(const std::vector<double>& a, const std::vector<double>& b, double margin) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).margin(margin));
}

void check_near(const train::Tensors& a, const train::Tensors& b, double margin) {
  REQUIRE(a.size() == b.size());
  for (const auto& [name, tensor] : a) {
    INFO(name);
    check_near(numbers(tensor), numbers(b.at(name)), margin);
  }
}

std::vector<double> device_values(Module& module, const std::string& name) {
  std::vector<double> values;
  for (std::int64_t d = 0; d < module.program(0).mesh.devices(); ++d) {
    values.push_back(train::numbers(module, module.input(name), d).front());
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
  for (const train::Comparison& comparison : trained.result().comparisons) {
    INFO(comparison.parameter);
    check_near(comparison.learned, comparison.truth, 0.05);
  }
  const std::vector<double> falling = losses(trained);
  CHECK(falling.size() == 6);  // steps 1, 10, 20, ... 50
  for (std::size_t i = 1; i < falling.size(); ++i) CHECK(falling[i] < falling[i - 1]);
}

TEST_CASE("gradient_averaging.yaml gives the update that was computed by hand, on each of the 4 devices", "[train]") {
  const train::Setup setup = setup_of_config("gradient_averaging.yaml", {any_backend()});
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
  const train::Comparison& kernel = trained.result().comparisons.back();
  CHECK(kernel.parameter == "dense_0.kernel");
  CHECK(kernel.initial == std::vector<double>{1.0});
  CHECK(kernel.learned == std::vector<double>{weights[0]});
  // mean((2x + 0.5 - x)^2) over x = 0 .. 15, and the norm of (-162.5, -16)
  REQUIRE(trained.of<train::Logged>().size() == 1);
  CHECK(losses(trained).front() == Approx(85.25));
  CHECK(trained.of<train::Logged>().front().grad_norm == Approx(std::hypot(162.5, 16.0)));
}

TEST_CASE("metrics of an epoch are made of its sums, whatever its batches, devices and microbatches", "[train]") {
  const std::string metrics = "metrics=[accuracy, recall, f1: {average: none}, perplexity]";
  // Without learning, the epoch's means are those of the parameters that training begins with.
  const std::vector<std::string> set = {any_backend(), metrics, "optimizer={sgd: {}, learning_rate: 0}",
                                        "train.duration=1 epoch"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), set.begin(), set.end());
    const Trained trained = train_setup(setup_of_text(small_images, more));
    REQUIRE(trained.of<train::EpochEnded>().size() == 1);
    return trained.of<train::EpochEnded>().front().measures;
  };
  const train::Measures many = with({}), one = with({"data.batch_size=48", "mesh.axes={devices: 1}"}),
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
      CHECK(trained.of<train::EpochEnded>().back().measures.back().second == Approx(expected).epsilon(1e-6));
    }
  }
  // Equal targets have no variance, whatever rounding leaves of their sums.
  std::string equal = "[20000.3]";
  for (int i = 1; i < count; ++i) equal += ", [20000.3]";
  const Trained trained = train_setup(setup_of_text(text(equal)));
  CHECK(trained.of<train::EpochEnded>().back().measures.back().second == 0);
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
  const auto bytes = [&](const char* name) { return train::bytes_of(*module, module->output(0, name)); };
  CHECK(bytes("divided") == bytes("mean"));
  CHECK(train::scalar(*module, module->output(0, "mean")) == Approx((-12.5 - 84.5 - 1.0 / 3 + 0.1) / 4));
}

TEST_CASE("a masked, microbatched run equals the unsplit one", "[train]") {
  const std::vector<std::string> common = {any_backend(), "data.batch_size=10", "data.remainder=mask",
                                           "train.duration=10 steps"};
  std::vector<std::string> one = common, split = common;
  one.emplace_back("mesh.axes={a: 1}");
  split.insert(split.end(), {"mesh.axes=[{a: 2}, {b: 3}]", "data.microbatches=3"});
  const Trained whole = train_setup(setup_of_text(small_images, one));
  const Trained parts = train_setup(setup_of_text(small_images, split));
  check_near(losses(parts), losses(whole), 1e-5);
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
    CHECK(losses(one).size() == 6);
    for (const char* devices : {"2", "4", "8"}) {
      INFO(devices << " devices");
      const Trained more = with(devices, devices == std::string("8") ? "1" : "2");
      check_near(losses(more), losses(one), 1e-5);
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
    REQUIRE(trained.of<train::Evaluated>().size() == 1);
    return trained.of<train::Evaluated>().front();
  };
  const train::Evaluated one = evaluated({"mesh.axes={a: 1}", "data.batch_size=1"});
  CHECK(one.examples == 21);
  for (const std::vector<std::string>& set : std::vector<std::vector<std::string>>{
           {"mesh.axes={a: 4}", "data.batch_size=16"},
           {"mesh.axes={a: 2}", "data.batch_size=48"},
           {"mesh.axes=[{a: 2}, {b: 3}]", "data.batch_size=6"},
           {"mesh.axes={a: 13}", "data.batch_size=10", "data.remainder=mask", "data.microbatches=3"}}) {
    INFO(set[0] << " " << set[1]);
    const train::Evaluated many = evaluated(set);
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
    const train::Setup setup = setup_of_config("linear_regression.yaml", set);
    const Trained trained = train_setup(setup);
    REQUIRE(trained.ended.status == "stopped");
    CHECK(trained.ended.reason == "guard");
    CHECK(trained.ended.exit_status == 5);
    const std::int64_t good = trained.ended.steps;
    CHECK(good > 5);
    CHECK(good < 20);
    CHECK(numbers(trained.state.at("step")).front() == static_cast<double>(good));
    CHECK(trained.of<train::Warned>().back().text.starts_with(
        "step " + std::to_string(good + 1) +
        ": the loss, the gradient or the update is not finite; stopped with the parameters after step " +
        std::to_string(good) +
        " (train.on_nonfinite: halt); replayed on device 0, the first result that is not finite "));
    CHECK(trained.of<train::Logged>().back().step == trained.of<train::Progressed>().back().step);
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
  for (const train::Evaluated& evaluated : trained.of<train::Evaluated>()) CHECK(evaluated.step <= good);
  // The run ends at the first step at which anything would have looked.
  CHECK(trained.of<train::Progressed>().back().step <= good + 2);
  CHECK(trained.of<train::Logged>().back().step == trained.of<train::Progressed>().back().step);
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
    const std::vector<double> values = numbers(named.parameters.at(name));
    CHECK(std::any_of(values.begin(), values.end(), [](double value) { return value != 0; }));
  }
  CHECK(named.ended.steps == train_setup(setup_of_text(small_images, plain)).ended.steps);
}

TEST_CASE("true values stand beside those of one dense layer, and of no other model", "[train]") {
  const auto truths = [](const char* layers) {
    const Trained trained = train_setup(
        setup_of_config("linear_regression.yaml", {"train.duration=2 steps", std::string("model.layers=") + layers}));
    std::size_t count = 0;
    for (const train::Comparison& comparison : trained.result().comparisons)
      count += comparison.truth.empty() ? 0U : 1U;
    return count;
  };
  CHECK(truths("[{dense: 1}]") == 2);
  CHECK(truths("[{dense: 3}, tanh, {dense: 1}]") == 0);
  CHECK(truths("[{dense: 1}, tanh]") == 0);
  CHECK(truths("[{dense: 1}, {dense: 1}]") == 0);
}

TEST_CASE("a run that is bad from its first step keeps what it began with", "[train]") {
  const std::string text = R"(mesh: {axes: {a: 2}}
data:
  source: {values: {inputs: [[-1.0e+30], [1]], targets: [[1], [2]]}}
  batch_size: all
model:
  layers: [{dense: 1}]
  init: {values: {dense_0: {kernel: [[2.0]], bias: [0.5]}}}
loss: mean_squared_error
optimizer: {sgd: {}, learning_rate: 0.1}
train: {duration: 3 steps}
)";
  const Trained trained = train_setup(setup_of_text(text, {any_backend()}));
  CHECK(trained.ended.exit_status == 5);
  CHECK(trained.ended.steps == 0);
  CHECK(numbers(trained.parameters.at("dense_0.kernel")) == std::vector<double>{2.0});
  CHECK(trained.of<train::Warned>().back().text.starts_with(
      "step 1: the loss, the gradient or the update is not finite; stopped with the parameters that training began "
      "with (train.on_nonfinite: halt); "));
}

TEST_CASE("only a step that could overflow is looked at before it is taken", "[train]") {
  const auto looks = [](const std::string& rule, const std::string& rate) {
    spec::Loaded loaded = spec::load_text(
        "data: {source: synthetic_images, batch_size: 8}\nmodel: {layers: [flatten, {dense: 10}]}\n"
        "loss: softmax_cross_entropy\ntrain: {duration: 1 step}\noptimizer: {" +
            rule + ", learning_rate: " + rate + "}\n",
        "c.yaml", "/base", {});
    return train::may_overflow(train::make_setup(std::move(loaded)).optimizer());
  };
  for (const char* rule : {"adam: {}", "adam: {b1: 0.0}", "adam: {b2: 0.99}", "adam: {b2: 0.9999}", "adamw: {}"}) {
    INFO(rule);
    CHECK_FALSE(looks(rule, "0.001"));
    CHECK_FALSE(looks(rule, "1000.0"));
    CHECK(looks(rule, "1.0e+37"));
  }
  // A finite gradient may be as large as any number.
  CHECK_FALSE(looks("sgd: {}", "1.0e-09"));
  CHECK(looks("sgd: {}", "0.001"));
  CHECK(looks("sgd: {momentum: 0.9}", "0.0"));        // the trace itself
  CHECK(looks("adam: {b2: 0.99999999}", "0.001"));    // f32 makes 1 of it: the mean of squares never forgets
  CHECK(looks("adam: {b1: 0.9, b2: 0.5}", "0.001"));  // the mean outlives the deviation that it is divided by
  CHECK(looks("adamw: {weight_decay: 2.0}", "1.0"));  // takes away more than there is
  CHECK(looks("sgd: {}, base_batch_size: 1", "1.0e+11"));
  // Clipping bounds the gradient, and with it a trace.
  for (const char* clip : {"clip: 1.0", "clip_by_global_norm: 1.0"}) {
    INFO(clip);
    CHECK_FALSE(looks(std::string("sgd: {}, ") + clip, "0.1"));
    CHECK_FALSE(looks(std::string("sgd: {momentum: 0.9}, ") + clip, "0.1"));
    CHECK_FALSE(looks(std::string("sgd: {weight_decay: 0.1}, ") + clip, "0.1"));
    CHECK(looks(std::string("sgd: {momentum: 0.9, weight_decay: 0.1}, ") + clip, "0.1"));  // a trace of parameters
    CHECK(looks(std::string("sgd: {weight_decay: 2.0}, ") + clip, "0.1"));
  }
  CHECK(looks("sgd: {weight_decay: 0.1}", "1.0e-09"));  // beside a gradient of any size
  for (const char* rule : {"rmsprop: {}", "rmsprop: {momentum: 0.9, nesterov: true}", "nadam: {}", "lion: {}"}) {
    INFO(rule);
    CHECK_FALSE(looks(rule, "0.001"));
    CHECK(looks(rule, "1.0e+37"));
  }
  CHECK(looks("rmsprop: {centered: true}", "0.001"));  // squares less their mean may be rounding error
  CHECK(looks("adagrad: {}", "0.001"));                // a sum that only grows
  CHECK(looks("lion: {weight_decay: 2.0}", "1.0"));
  // Groups: the largest scale counts, and only of what is trained.
  const std::string group = "adam: {}, groups: [{parameters: \"*.bias\", ";
  CHECK(looks(group + "learning_rate_scale: 1.0e+36}]", "0.001"));
  CHECK_FALSE(looks(group + "learning_rate_scale: 1000.0}]", "0.001"));
  CHECK_FALSE(looks(group + "freeze: true}]", "0.001"));
  CHECK(looks("adamw: {}, groups: [{parameters: \"*.bias\", weight_decay: 2.0}]", "1.0"));
}

TEST_CASE("an update that is not finite counts as a bad step, with any optimizer", "[train]") {
  for (const char* rule : {"sgd: {}", "sgd: {momentum: 0.9}", "adam: {}", "adamw: {}", "rmsprop: {}", "adagrad: {}",
                           "nadam: {}", "lion: {}", "rmsprop: {momentum: 0.5}", "sgd: {}, clip: 1.0e+30"}) {
    INFO(rule);
    const Trained trained = train_setup(setup_of_text(
        std::string("data: {source: {values: {inputs: [[1]], targets: [[-3.4e+38]]}}, batch_size: 1}\n"
                    "model: {layers: [dense: 1], init: {values: {dense_0: {kernel: [[-3.0e+38]], bias: [8.0]}}}}\n"
                    "loss: mean_absolute_error\ntrain: {duration: 3 steps}\noptimizer: {learning_rate: 3.0e+38, ") +
        rule + "}\n"));
    CHECK(trained.ended.exit_status == 5);
    CHECK(trained.ended.steps == 0);
    CHECK(numbers(trained.parameters.at("dense_0.kernel")) == std::vector<double>{static_cast<double>(-3.0e+38F)});
    CHECK(numbers(trained.parameters.at("dense_0.bias")) == std::vector<double>{8.0});
  }
}

namespace {

// One weight of 1 and an input, whose gradient is `input` times the sign of the error.
Trained one_weight(const std::string& input, const std::string& optimizer) {
  return train_setup(setup_of_text("data: {source: {values: {inputs: [[" + input +
                                   "]], targets: [[-1]]}}, batch_size: 1}\n"
                                   "model: {layers: [dense: {features: 1, use_bias: false}], init: {values: {dense_0: "
                                   "{kernel: [[1.0]]}}}}\n"
                                   "loss: mean_absolute_error\ntrain: {duration: 1 step}\noptimizer: {" +
                                   optimizer + "}\n"));
}

}  // namespace

TEST_CASE("only the clipped gradient is judged by its squares", "[train]") {
  for (const char* rule : {"adam: {}", "rmsprop: {}", "nadam: {}"}) {
    const auto exit_status = [&](const std::string& clip) {
      return one_weight("1.0e+25", std::string(rule) + ", learning_rate: 0.1" + clip).ended.exit_status;
    };
    INFO(rule);
    CHECK(exit_status("") == 5);
    CHECK(exit_status(", clip: 1.0") == 0);
    CHECK(exit_status(", clip_by_global_norm: 1.0") == 0);
    CHECK(exit_status(", clip: 1.0e+22") == 5);
  }
  const Trained clipped = one_weight("1.0e+25", "sgd: {}, learning_rate: 0.5, clip_by_global_norm: 1.0");
  CHECK(clipped.of<train::Logged>().front().grad_norm == Approx(1e25));  // before clipping
  CHECK(numbers(clipped.parameters.at("dense_0.kernel"))[0] == Approx(0.5));
}

TEST_CASE("a finite gradient whose squares overflow trains on, and its norm is right", "[train]") {
  const Trained large = one_weight("1.0e+25", "sgd: {}, learning_rate: 1.0e-25");
  CHECK(large.ended.exit_status == 0);
  CHECK(large.of<train::Logged>().front().grad_norm == Approx(1e25));
  CHECK(numbers(large.parameters.at("dense_0.kernel"))[0] == Approx(0.0).margin(1e-6));

  // Squares of 1e12 in the loss, and of 1e24 in the gradient.
  const std::string far = R"(mesh: {axes: {a: 2}}
data:
  source: {values: {inputs: [[1.0e+12, 0], [-1.0e+12, 2.0e+12]], targets: [[0], [1]]}}
  batch_size: all
model:
  layers: [dense: 1]
  init: {values: {dense_0: {kernel: [[1.0], [2.0]], bias: [0]}}}
loss: mean_squared_error
optimizer: {sgd: {momentum: 0.9}, learning_rate: 1.0e-27}
train: {duration: 3 steps, log_every: 1 step}
)";
  const Trained trained = train_setup(setup_of_text(far));
  CHECK(trained.ended.exit_status == 0);
  CHECK(trained.ended.steps == 3);
  const train::Logged first = trained.of<train::Logged>().front();
  CHECK(first.measures.front().second == Approx((1e24 + 9e24) / 2));
  // Of the kernel: the means of 2·1e12·1e12 and 2·3e12·(-1e12, 2e12).
  CHECK(first.grad_norm == Approx(std::hypot((2e24 - 6e24) / 2, 12e24 / 2, 6e12 / 2)));
}

TEST_CASE("only an element that is not finite stops training", "[train]") {
  // The squares of 1e30 and of 3e38 overflow; the new weights do not.
  for (const char* rate : {"1.0e+30", "3.0e+38"}) {
    INFO(rate);
    for (const char* rule : {"sgd: {}", "sgd: {momentum: 0.9}", "sgd: {momentum: 0.9, nesterov: true}", "adam: {}"}) {
      INFO(rule);
      const Trained trained = one_weight(std::string(rule).find("nesterov") != std::string::npos ? "0.5" : "1.0",
                                         std::string(rule) + ", learning_rate: " + rate);
      CHECK(trained.ended.exit_status == 0);
      CHECK(trained.ended.steps == 1);
    }
  }
  CHECK(one_weight("2.0", "sgd: {}, learning_rate: 3.0e+38").ended.exit_status == 5);
  // An update beyond f32 by the gradient's size alone.
  CHECK(one_weight("1.0e+38", "sgd: {}, learning_rate: 3.0").ended.exit_status == 0);
  CHECK(one_weight("1.0e+38", "sgd: {}, learning_rate: 4.0").ended.exit_status == 5);
  CHECK(one_weight("1.0e+38", "sgd: {}, learning_rate: 4.0").ended.steps == 0);
  // Adam keeps a mean of squares: that of 1.9e19 is infinite, which would stop its parameter for ever, unsaid.
  for (const char* rule : {"adam: {}", "adamw: {}", "adam: {b1: 0.9, b2: 0.5}"}) {
    INFO(rule);
    const std::string optimizer = std::string(rule) + ", learning_rate: 0.1";
    CHECK(one_weight("1.8e+19", optimizer).ended.exit_status == 0);
    CHECK(one_weight("1.9e+19", optimizer).ended.exit_status == 5);
  }
}

TEST_CASE("neither the mean gradient nor the new parameters are kept beside what they come from", "[train]") {
  for (const char* rule : {"sgd: {}", "sgd: {momentum: 0.9}", "adam: {}", "adam: {b1: 0.9, b2: 0.5}"}) {
    INFO(rule);
    const train::Setup setup =
        setup_of_text(small_images, {"model.layers=[flatten, {dense: {features: 512, use_bias: false}}, {dense: 3}]",
                                     "optimizer={" + std::string(rule) + ", learning_rate: 0.01}"});
    const auto size = static_cast<double>(36 * 512 * sizeof(float));
    double copies = 1;  // the parameter
    for (const Input& input : setup.training->inputs) copies += input.name.ends_with("/dense_0.kernel") ? 1 : 0;
    // The sum of gradients, and a byte for each element of the update that is checked.
    const cpu::Plan plan = cpu::make_plan(setup.training);
    CHECK(static_cast<double>(plan.kept.shared + plan.passing.shared) <= size * (copies + 1.25) + 64);
  }
}

TEST_CASE("a run of which every step was skipped was stopped by a guard", "[train]") {
  const Trained trained = train_setup(setup_of_text(R"(
data: {source: {values: {inputs: [[-1.0e+30]], targets: [[1]]}}, batch_size: 1}
model: {layers: [dense: 1], init: {values: {dense_0: {kernel: [[2.0]], bias: [0.5]}}}}
loss: mean_squared_error
optimizer: {sgd: {}, learning_rate: 0.1}
train: {duration: 3 steps, on_nonfinite: skip}
)",
                                                    {any_backend()}));
  CHECK(trained.ended.status == "stopped");
  CHECK(trained.ended.reason == "guard");
  CHECK(trained.ended.exit_status == 5);
  CHECK(trained.ended.steps_skipped() == 3);
  CHECK(trained.of<train::Warned>().back().text ==
        "all 3 steps were skipped: the loss, the gradient or the update was not finite (train.on_nonfinite: skip)");
  CHECK(trained.of<train::Warned>().back().stops);
}

TEST_CASE("on_nonfinite skip leaves bad steps out, counts them and goes on", "[train]") {
  const std::string text = R"(mesh: {axes: {a: 2}}
data:
  source: {values: {inputs: [[1], [2], [-1.0e+30], [1], [3], [4]], targets: [[1], [2], [1], [1], [3], [4]]}}
  batch_size: 2
  shuffle: false
model:
  layers: [{dense: 1}]
  init: {values: {dense_0: {kernel: [[2.0]], bias: [0.5]}}}
loss: mean_squared_error
optimizer: {sgd: {}, learning_rate: 0.01}
train: {duration: 2 epochs, on_nonfinite: skip, log_every: 1 step}
)";
  const std::string backend = any_backend();
  const Trained trained = train_setup(setup_of_text(text, {backend}));
  CHECK(trained.ended.status == "done");
  CHECK(trained.ended.exit_status == 0);
  CHECK(trained.ended.steps == 6);
  CHECK(trained.ended.steps_skipped() == 2);
  CHECK(numbers(trained.state.at("step")).front() == 4);
  CHECK(trained.of<train::Warned>().back().text ==
        "2 steps were skipped: the loss, the gradient or the update was not finite (train.on_nonfinite: skip)");
  // Epochs count the four good examples; the bad step's line says that it is not finite.
  REQUIRE(trained.of<train::EpochEnded>().size() == 2);
  for (const train::EpochEnded& epoch : trained.of<train::EpochEnded>()) {
    CHECK(epoch.examples == 4);
    CHECK(std::isfinite(epoch.measures.front().second));
  }
  CHECK(trained.metrics[1].find("\"loss\":null") != std::string::npos);
  CHECK(trained.metrics[1].find("\"finite\":false") != std::string::npos);
  const Trained without = train_setup(setup_of_text(text, {backend, "data.source.values.inputs=[[1], [2], [3], [4]]",
                                                           "data.source.values.targets=[[1], [2], [3], [4]]"}));
  CHECK(without.parameters == trained.parameters);
}
