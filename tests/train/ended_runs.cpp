// Runs that end, or are stopped, at awkward moments.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <optional>
#include <thread>

#include "core/evaluate/evaluator.h"
#include "core/report/runs/metrics_file.h"
#include "core/run/checkpoint.h"
#include "tests/catch.h"
#include "tests/run/file_size_limit.h"
#include "tests/session_run.h"
#include "tests/words.h"

namespace pmaptrain::testing {
namespace {

namespace fs = std::filesystem;

// Diverges: a parameter is not finite after some twenty steps.
const std::string diverging = R"(
mesh: {axes: {devices: 2}}
data: {source: {values: {inputs: [[1.0], [2.0]], targets: [[2.0], [4.0]]}}, batch_size: 2}
model: {layers: [dense: 1], init: {values: {dense_0: {kernel: [[1.0]], bias: [0.5]}}}}
loss: mean_squared_error
optimizer: {sgd: {}, learning_rate: 100.0}
train: {duration: 100000 steps, log_every: never}
)";

TEST_CASE("a run that a signal stops between two lines has looked at its last steps", "[train]") {
  std::atomic<int> stop = 0;
  train::SessionOptions options;
  options.stop = &stop;
  options.between_steps = [&](Module&, std::int64_t step) {
    if (step == 200) stop = SIGTERM;
  };
  // No epoch ends, and no line is due, before the signal: nothing has looked at the steps until then.
  const Trained trained =
      train_setup(setup_of_text(diverging, {"data.source={synthetic_linear: {features: 1, examples_per_device: 5000}}",
                                            "data.batch_size=1", "mesh.axes.devices=1"}),
                  options);
  CHECK(trained.ended.steps < 200);
  CHECK(trained.ended.reason == "guard");
  CHECK(trained.ended.exit_status == 5);
  CHECK(to_doubles(trained.state.at("step")).front() == static_cast<double>(trained.ended.steps));
}

TEST_CASE("a run that is stopped while all its steps were skipped is not finished", "[train]") {
  const std::string text = R"(
mesh: {axes: {devices: 1}}
data: {source: {values: {inputs: [[1.0e30], [1.0], [2.0], [3.0]], targets: [[0.0], [1.0], [2.0], [3.0]]}}, batch_size: 1, shuffle: false}
model: {layers: [dense: 1]}
loss: mean_squared_error
optimizer: {sgd: {}, learning_rate: 0.01}
train: {duration: 4 steps, on_nonfinite: skip}
)";
  train::SessionOptions options;
  options.max_steps = 1;
  const Trained stopped = train_setup(setup_of_text(text), options);
  CHECK(stopped.ended.steps_skipped() == 1);
  CHECK(stopped.ended.reason == "max_steps");
  CHECK(stopped.ended.exit_status == 0);
}

TEST_CASE("before its first update an average is the parameters, for evaluations and in files", "[train]") {
  const TemporaryFolder root;
  // The first step is not finite, so the run ends with what it began with.
  const Trained trained = train_setup_in(
      root / "run", setup_of_text(diverging, {"optimizer.learning_rate=1.0e+38", "train.ema={decay: 0.9}",
                                              "data.source.values.targets=[[1.0e+30], [1.0e+30]]"}));
  CHECK(trained.ended.reason == "guard");
  CHECK(trained.ended.steps == 0);
  CHECK(run::read_safetensors(root / "run/checkpoints/last/ema.safetensors") == trained.parameters);
}

TEST_CASE("an eps that is too small to bound a step of adam has every step looked at before it is taken", "[train]") {
  const auto largest = [](const std::string& eps) {
    const Trained trained = train_setup(setup_of_text(
        diverging, {"optimizer.adam.eps=" + eps, "optimizer.learning_rate=1.0e+16", "train.duration=3 steps",
                    "data.source.values={inputs: [[1.0e-22], [1.0e-22]], targets: [[0.5], [0.5]]}"}));
    double most = 0;
    for (const auto& [name, tensor] : trained.parameters) {
      for (const double value : to_doubles(tensor)) most = std::max(most, std::abs(value));
    }
    return most;
  };
  CHECK(std::isfinite(largest("1.5e-45")));
  CHECK(std::isfinite(largest("1.0e-8")));
}

TEST_CASE("a best checkpoint that could not be written is not the best", "[train]") {
  const TemporaryFolder root;
  train::SessionOptions options;
  std::optional<FileSizeLimit> limit;
  options.between_steps = [&](Module&, std::int64_t step) {
    if (step == 3) limit.emplace(300);  // the evaluation after step 3 is the best so far
    if (step == 5) limit.reset();
  };
  const Trained trained = train_setup_in(
      root / "run",
      setup_of_text(small_images, {"train.checkpoint={every: never, best: {metric: loss}}", "train.duration=12 steps",
                                   "data.validation=0.25", "train.eval_every=3 steps"}),
      options);
  CHECK(trained.ended.status == "done");
  REQUIRE(trained.result().best);
  REQUIRE(trained.result().selected);
  CHECK(trained.result().selected->step == trained.result().best->step);
  CHECK(trained.result().selected->measures.back().first == "test");
  CHECK(trained.result().best->step > 3);
  CHECK(fs::read_symlink(root / "run/checkpoints/best") == run::checkpoint_name(trained.result().best->step));
}

TEST_CASE("a run ends with the measures of the checkpoint that commands use, beside those of its last parameters",
          "[train]") {
  const TemporaryFolder root;
  const std::string run = root / "run";
  const auto setup = setup_of_text(
      small_images, {"train.checkpoint={every: never, best: {metric: loss, mode: max}}", "train.duration=12 steps",
                     "data.validation=0.25", "train.eval_every=3 steps", "metrics=[accuracy, confusion_matrix]"});
  const Trained trained = train_setup_in(run, setup);
  const run::MemberEnded& ended = trained.result();
  REQUIRE(ended.best->step == 3);
  REQUIRE(ended.selected);
  CHECK(ended.selected->checkpoint == "best");
  CHECK(ended.selected->step == 3);
  const auto check = [&](const char* checkpoint, const run::SplitMeasures& measures,
                         const run::Confusions& confusions) {
    REQUIRE(measures.size() == 3);
    for (std::size_t i = 1; i < 3; ++i) {
      INFO(checkpoint << " " << measures[i].first);
      const auto found = evaluate::evaluate_checkpoint(setup.loaded, run, checkpoint, measures[i].first);
      CHECK(found.front().measures == measures[i].second);
      CHECK(found.front().confusion == confusions.at(measures[i].first));
    }
  };
  check("best", ended.selected->measures, ended.selected->confusions);
  check("last", ended.final_measures, ended.confusions);
  CHECK(ended.selected->measures.back().second != ended.final_measures.back().second);
  // Both evaluations of test are lines; only those of the last parameters are points of a curve.
  const auto lines = test::read_text(root / "run/metrics.jsonl");
  CHECK(test::contains(lines, R"({"event":"eval","step":3,"epoch":2,"split":"test","checkpoint":"best",)"));
  CHECK(report::read_metrics(root / "run/metrics.jsonl").find("eval", "test", "loss")->steps.size() == 1);
}

TEST_CASE("a run that could not keep its best evaluation fails, though only the link could not be written", "[train]") {
  const TemporaryFolder root;
  train::SessionOptions options;
  options.between_steps = [&](Module&, std::int64_t step) {
    if (step == 1) fs::create_directories(root / "run/checkpoints/best/in the way");
  };
  const Trained trained = train_setup_in(
      root / "run",
      setup_of_text(small_images,
                    {"train.checkpoint={every: never, best: {metric: loss}}", "train.eval_every=2 steps"}),
      options);
  CHECK(trained.ended.status == "failed");
  CHECK(trained.ended.exit_status == 1);
  CHECK_FALSE(trained.result().best);
  REQUIRE(trained.ended.missing.size() == 1);
  CHECK(trained.ended.missing.front().starts_with("checkpoints/best lacks the best evaluation, loss "));
  CHECK(trained.ended.missing.front().ends_with(" after step 4: its checkpoint could not be written"));
  const auto warnings = trained.of<run::Warned>();
  CHECK(std::any_of(warnings.begin(), warnings.end(), [&](const run::Warned& warned) {
    return warned.text == "a checkpoint could not be written: '" + (root / "run/checkpoints/best") +
                              "' cannot be written: Is a directory; training goes on";
  }));
}

TEST_CASE("a run whose best checkpoint is lost ends with the last parameters, and says so", "[train]") {
  const TemporaryFolder root;
  train::SessionOptions options;
  options.between_steps = [&](Module&, std::int64_t step) {
    if (step != 12) return;
    while (!fs::is_symlink(root / "run/checkpoints/best")) std::this_thread::yield();  // it is still being written
    fs::remove_all(root / "run/checkpoints/step-00000003");
  };
  const Trained trained = train_setup_in(
      root / "run",
      setup_of_text(small_images, {"train.checkpoint={every: never, best: {metric: loss, mode: max}}",
                                   "train.duration=12 steps", "data.validation=0.25", "train.eval_every=3 steps"}),
      options);
  CHECK(trained.ended.status == "done");
  CHECK(trained.ended.exit_status == 0);
  REQUIRE(trained.result().best->step == 3);
  CHECK_FALSE(trained.result().selected);
  CHECK(trained.result().final_measures.back().first == "test");
  CHECK(trained.of<run::Warned>().back().text.starts_with("the measures of the best checkpoint are not known: "));
}

}  // namespace
}  // namespace pmaptrain::testing
