// Runs with steps that are not finite, and the guards that halt them or leave such steps out.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "core/setup/make_setup.h"
#include "core/step/optimizer.h"
#include "core/train/resume.h"
#include "tests/catch.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

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
  CHECK(to_doubles(trained.parameters.at("dense_0.kernel")) == std::vector<double>{2.0});
  CHECK(trained.of<run::Warned>().back().text.starts_with(
      "step 1: the loss, the gradient or the update is not finite; stopped with the parameters that training began "
      "with (train.on_nonfinite: halt); "));
  CHECK(trained.of<run::Warned>().back().text.ends_with(
      "; no update came before it: look at the data and the initial values first; data.normalize: auto brings the "
      "inputs near 0"));
}

TEST_CASE("the advice after a step that is not finite names only what the config does not have", "[train]") {
  const std::string text = R"(data:
  source: {values: {inputs: [[1], [2]], targets: [[1], [2]]}}
  batch_size: all
model: {layers: [{dense: 1}]}
loss: mean_squared_error
optimizer:
  sgd: {}
  clip: 1.0e+30
  learning_rate: {warmup_cosine_decay: {init_value: 1.0e+30, peak_value: 1.0e+31, warmup: 2 steps, end_value: 0.0}}
precision: mixed_bfloat16
train: {duration: 9 steps}
)";
  const Trained trained = train_setup(setup_of_text(text));
  CHECK(trained.ended.exit_status == 5);
  CHECK(trained.of<run::Warned>().back().text.ends_with(
      "; a lower optimizer.learning_rate (1e+30 at the update before) or precision: float32 may help"));
}

TEST_CASE("only a step that could overflow is looked at before it is taken", "[train]") {
  const auto looks = [](const std::string& rule, const std::string& rate) {
    spec::Loaded loaded = spec::load_text(
        "data: {source: synthetic_images, batch_size: 8}\nmodel: {layers: [flatten, {dense: 10}]}\n"
        "loss: softmax_cross_entropy\ntrain: {duration: 1 step}\noptimizer: {" +
            rule + ", learning_rate: " + rate + "}\n",
        "c.yaml", "/base", {});
    return step::may_overflow(setup::make_setup(std::move(loaded)).optimizer());
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
  CHECK(looks("adadelta: {}", "0.001"));               // updates may grow
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
    CHECK(to_doubles(trained.parameters.at("dense_0.kernel")) == std::vector<double>{static_cast<double>(-3.0e+38F)});
    CHECK(to_doubles(trained.parameters.at("dense_0.bias")) == std::vector<double>{8.0});
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
  CHECK(clipped.of<run::Logged>().front().grad_norm == Approx(1e25));  // before clipping
  CHECK(to_doubles(clipped.parameters.at("dense_0.kernel"))[0] == Approx(0.5));
}

TEST_CASE("a finite gradient whose squares overflow trains on, and its norm is right", "[train]") {
  const Trained large = one_weight("1.0e+25", "sgd: {}, learning_rate: 1.0e-25");
  CHECK(large.ended.exit_status == 0);
  CHECK(large.of<run::Logged>().front().grad_norm == Approx(1e25));
  CHECK(to_doubles(large.parameters.at("dense_0.kernel"))[0] == Approx(0.0).margin(1e-6));

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
  const run::Logged first = trained.of<run::Logged>().front();
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
  CHECK(trained.of<run::Warned>().back().text ==
        "all 3 steps were skipped: the loss, the gradient or the update was not finite (train.on_nonfinite: skip)");
  CHECK(trained.of<run::Warned>().back().stops);
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
  CHECK(to_doubles(trained.state.at("step")).front() == 4);
  CHECK(trained.of<run::Warned>().back().text ==
        "2 steps were skipped: the loss, the gradient or the update was not finite (train.on_nonfinite: skip)");
  // Epochs count the four good examples; the bad step's line says that it is not finite.
  REQUIRE(trained.of<run::EpochEnded>().size() == 2);
  for (const run::EpochEnded& epoch : trained.of<run::EpochEnded>()) {
    CHECK(epoch.examples == 4);
    CHECK(std::isfinite(epoch.measures.front().second));
  }
  CHECK(trained.metrics[1].find("\"loss\":null") != std::string::npos);
  CHECK(trained.metrics[1].find("\"finite\":false") != std::string::npos);
  const Trained without = train_setup(setup_of_text(text, {backend, "data.source.values.inputs=[[1], [2], [3], [4]]",
                                                           "data.source.values.targets=[[1], [2], [3], [4]]"}));
  CHECK(without.parameters == trained.parameters);
}

TEST_CASE("the last lines of a halted run are of the step that was not finite, whenever it is found", "[train]") {
  const std::string text = R"(mesh: {axes: {a: 2}}
data:
  source: {values: {inputs: [[1], [2], [3], [2], [-1.0e+30], [1], [3], [4], [5], [1], [2], [2], [1], [1], [3], [2]],
                    targets: [[1], [2], [3], [2], [1], [1], [3], [4], [5], [1], [2], [2], [1], [1], [3], [2]]}}
  batch_size: 2
  shuffle: false
model: {layers: [{dense: 1}, {dropout: 0.1}], init: {values: {dense_0: {kernel: [[2.0]], bias: [0.5]}}}}
loss: mean_squared_error
optimizer: {adam: {}, learning_rate: {linear: {init_value: 0.01, end_value: 0.001, transition: 8 steps}}}
train: {duration: 6 steps}
)";
  const std::string backend = any_backend();
  train::SessionOptions stops_there;
  stops_there.max_steps = 3;
  const Trained interrupted = train_setup(setup_of_text(text, {backend, "train.log_every=never"}), stops_there);
  for (const char* const log_every : {"never", "2 steps", "4 steps", "6 steps"}) {
    const TemporaryFolder root;
    INFO(log_every);
    const setup::Setup setup = setup_of_text(text, {backend, std::string("train.log_every=") + log_every});
    const Trained halted = train_setup_in(root / "run", setup);
    CHECK(halted.ended.reason == "guard");
    CHECK(halted.ended.steps == 2);
    CHECK(halted.of<run::Logged>().back().step == 3);
    CHECK(halted.of<run::EpochEnded>().back().step == 3);
    CHECK(halted.of<run::EpochEnded>().back().examples == 4);
    const auto last_lines = [](const Trained& trained) {
      REQUIRE(trained.metrics.size() >= 2);
      return std::vector(trained.metrics.end() - 2, trained.metrics.end());
    };
    CHECK(last_lines(halted) == last_lines(interrupted));

    // A process that was killed before it wrote the summary has written the lines, or not.
    std::filesystem::remove(root / "run/summary.json");
    std::optional<train::ResumePoint> point = train::find_resume_point(root / "run");
    train::SessionOptions options;
    options.resume = &*point;
    options.folder.resume = true;
    options.folder.resumed = {2, "", point->checkpoint.state.metrics_bytes};
    const Trained again = train_setup_in(root / "run", setup, options);
    CHECK(again.ended.reason == "guard");
    CHECK(again.metrics == halted.metrics);
  }
}
