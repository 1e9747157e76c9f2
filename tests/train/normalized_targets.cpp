// data.normalize_targets: the loss is of targets in units of their standard deviation, everything else in their own.
#include <cmath>
#include <cstring>
#include <filesystem>

#include "core/base/text.h"
#include "core/evaluate/predictor.h"
#include "core/run/checkpoint.h"
#include "core/run/records/final_report.h"
#include "core/train/resume.h"
#include "tests/catch.h"
#include "tests/data/files.h"
#include "tests/session_run.h"
#include "tests/train/rows_text.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

namespace fs = std::filesystem;

// 24 examples with two targets, one large, one small.
struct Examples {
  Rows inputs, targets, normalised;
  std::vector<double> mean{0, 0}, std{0, 0};

  Examples() {
    constexpr int count = 24;
    for (int i = 0; i < count; ++i) {
      const double x = (i * 7 % 13) / 6.0 - 1, z = (i * 5 % 11) / 5.0 - 1;
      inputs.push_back({x, z});
      targets.push_back({200000 + 65536 * x - 32768 * x * z, 0.001 * z - 0.002 * x});
      for (std::size_t c = 0; c < 2; ++c)
        targets.back()[c] = static_cast<double>(static_cast<float>(targets.back()[c]));
    }
    for (std::size_t c = 0; c < 2; ++c) {
      for (const std::vector<double>& row : targets) mean[c] += row[c] / count;
      for (const std::vector<double>& row : targets) std[c] += (row[c] - mean[c]) * (row[c] - mean[c]) / count;
      std[c] = std::sqrt(std[c]);
    }
    for (const std::vector<double>& row : targets) {
      normalised.push_back({(row[0] - mean[0]) / std[0], (row[1] - mean[1]) / std[1]});
    }
  }

  std::string config(const Rows& of) const {
    return R"(
mesh: {axes: {devices: 4}}
data:
  source: {values: {inputs: )" +
           rows_text(inputs) + ", targets: " + rows_text(of) + R"(}}
  batch_size: 10
  remainder: mask
model: {layers: [{dense: 8}, tanh, {dense: 2}]}
loss: {huber: {delta: 0.5}}
metrics: [mean_absolute_error, mean_squared_error, r2]
optimizer: {adam: {}, learning_rate: 0.02}
train: {duration: 5 epochs, log_every: 1 step}
)";
  }
  setup::Setup setup(std::vector<std::string> set = {}) const {
    set.insert(set.begin(), "data.normalize_targets=auto");
    return setup_of_text(config(targets), std::move(set));
  }
};

double measure(const run::Measures& measures, const std::string& name) {
  for (const auto& [found, value] : measures) {
    if (found == name) return value;
  }
  FAIL(name);
  return 0;
}

bool is_near(double found, double expected, double tolerance = 1e-4) {
  UNSCOPED_INFO(found << ", expected " << expected);
  return std::abs(found - expected) <= tolerance * std::abs(expected);
}

// The predictions of the values of some inputs.
std::vector<float> predicted(const spec::Loaded& loaded, const fs::path& run, const TemporaryFolder& folder,
                             const Rows& inputs, run::MemberNumber member = std::nullopt) {
  std::vector<float> numbers;
  for (const std::vector<double>& row : inputs) numbers.insert(numbers.end(), row.begin(), row.end());
  evaluate::PredictionRequest request;
  request.input.path = folder.write("x.npy", npy("<f4", "(" + std::to_string(inputs.size()) + ", 2)", raw(numbers)));
  request.member = member;
  std::vector<float> values;
  evaluate::Predictor(loaded, run, request).run([&](std::int64_t, std::span<const std::byte> rows) {
    const std::size_t before = values.size();
    values.resize(before + rows.size() / sizeof(float));
    std::memcpy(values.data() + before, rows.data(), rows.size());
  });
  return values;
}

}  // namespace

TEST_CASE("a run on normalised targets is the run on targets that were normalised before", "[train]") {
  const Examples examples;
  for (const std::vector<std::string>& set : {std::vector<std::string>{}, {"data.microbatches=2"}}) {
    const Trained found = train_setup(examples.setup(set));
    const Trained expected = train_setup(setup_of_text(examples.config(examples.normalised), set));
    const run::Measures &own = found.result().final_measures.front().second,
                        &other = expected.result().final_measures.front().second;
    CHECK(is_near(measure(own, "loss"), measure(other, "loss")));
    CHECK(is_near(measure(own, "r2"), measure(other, "r2")));
    for (const auto& [name, tensor] : found.parameters) {
      const std::vector<double> a = to_doubles(tensor), b = to_doubles(expected.parameters.at(name));
      for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) < 1e-4);
    }
    CHECK(is_near(found.of<run::Logged>().front().grad_norm, expected.of<run::Logged>().front().grad_norm));
  }
}

TEST_CASE("predictions and metrics are in the units of the targets, by the statistics of the checkpoint", "[train]") {
  const Examples examples;
  const TemporaryFolder folder;
  const setup::Setup setup = examples.setup();
  const fs::path run = folder / "run";
  const Trained trained = train_setup_in(run, setup);
  const run::RunState state = run::load_run_state(run / "checkpoints/last");
  REQUIRE(state.encoding.targets);
  for (std::size_t c = 0; c < 2; ++c) {
    CHECK(is_near(state.encoding.targets->mean[c], examples.mean[c], 1e-12));
    CHECK(is_near(state.encoding.targets->std[c], examples.std[c], 1e-12));
  }
  const std::vector<float> values = predicted(setup.loaded, run, folder, examples.inputs);
  REQUIRE(values.size() == 48);
  double absolute = 0, squares = 0, loss = 0;
  for (std::size_t i = 0; i < 24; ++i) {
    for (std::size_t c = 0; c < 2; ++c) {
      const double error = std::abs(static_cast<double>(values[2 * i + c]) - examples.targets[i][c]);
      const double scaled = error / examples.std[c], near = std::min(scaled, 0.5);
      absolute += error / 48;
      squares += error * error / 48;
      loss += (near * near / 2 + 0.5 * (scaled - near)) / 48;
    }
  }
  const auto evaluated = evaluate::evaluate_checkpoint(setup.loaded, run, "last", "train").front().measures;
  CHECK(is_near(measure(evaluated, "mean_absolute_error"), absolute));
  CHECK(is_near(measure(evaluated, "mean_squared_error"), squares));
  CHECK(is_near(measure(evaluated, "loss"), loss));
  CHECK(measure(evaluated, "mean_absolute_error") > 1000);

  CHECK(trained.ended.normalised_targets);
  const std::string says =
      "\nthe loss is of normalised targets, in units of their standard deviation; metrics are in the "
      "targets' own units\n";
  CHECK(test::contains(run::final_report(trained.ended, false, 0), says));
  const std::string params = read_text(run / "checkpoints/last/params.safetensors");
  CHECK(
      test::contains(params, "{\"__metadata__\":{\"target_mean\":\"[" + exact(state.encoding.targets->mean[0]) + ", "));
  CHECK(test::contains(params, "\"target_std\":\"[" + exact(state.encoding.targets->std[0]) + ", "));
}

TEST_CASE("a resumed run has the bits of one in a piece, and data with other targets is refused", "[train]") {
  const Examples examples;
  const TemporaryFolder folder;
  const Trained whole = train_setup_in(folder / "whole", examples.setup());
  train::SessionOptions first;
  first.max_steps = 7;
  train_setup_in(folder / "run", examples.setup(), first);
  std::optional<train::ResumePoint> point = train::find_resume_point(folder / "run");
  REQUIRE(point);
  const run::RunState& state = point->checkpoint.state;
  Examples others;
  others.targets[3][1] += 0.5;
  CHECK(
      test::refusal([&] { train::check_data_continues(state, others.setup()); }, ExitStatus::data) ==
      "--resume needs the data that the run began with, and it has changed: the mean or the standard deviation of the "
      "targets differs | restore the data, or begin another run (--name)");
  train::check_data_continues(state, examples.setup());
  train::SessionOptions rest;
  rest.resume = &*point;
  rest.folder.resume = true;
  rest.folder.resumed = {state.step, run::best_folder(state), state.metrics_bytes};
  const Trained resumed = train_setup_in(folder / "run", examples.setup(), rest);
  CHECK(resumed.same_bits(whole));
}

TEST_CASE("members of an ensemble share the statistics, and each is the run that it would be alone", "[train]") {
  const Examples examples;
  const TemporaryFolder folder;
  const setup::Setup both = examples.setup(
      {"mesh.axes=[{models: 2}, {devices: 4}]", "ensemble={axis: models, vary: {seed: [0, 5]}}", "data.seed=0"});
  const setup::Setup alone = examples.setup({"seed=5", "data.seed=0"});
  train_setup_in(folder / "both", both);
  train_setup_in(folder / "alone", alone);
  CHECK(predicted(both.loaded, folder / "both", folder, examples.inputs, 1) ==
        predicted(alone.loaded, folder / "alone", folder, examples.inputs));
}

TEST_CASE("a target that is always the same counts as of standard deviation 1", "[train]") {
  Examples examples;
  for (std::vector<double>& row : examples.targets) row[1] = 7.25;
  const Trained trained = train_setup(examples.setup());
  CHECK(trained.ended.exit_status == 0);
  CHECK(std::isfinite(measure(trained.result().final_measures.front().second, "loss")));
}

TEST_CASE("targets near 1e21 train", "[train]") {
  Examples examples;
  for (std::vector<double>& row : examples.targets) row[0] *= 5e15;
  const Trained trained = train_setup(examples.setup());
  const run::Measures& measures = trained.result().final_measures.front().second;
  CHECK(trained.ended.exit_status == 0);
  for (const auto& [name, value] : measures) {
    INFO(name);
    CHECK(std::isfinite(value));
  }
}
