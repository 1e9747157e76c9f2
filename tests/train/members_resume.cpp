// What may change when an ensemble is continued, and what is told of its members.
#include "core/run/checkpoint.h"
#include "core/train/resume.h"
#include "tests/catch.h"
#include "tests/session_run.h"

namespace pmaptrain::testing {
namespace {

const std::string three_lines = R"(seed: 4
mesh: {axes: [{trials: 3}, {a: 2}, {b: 2}]}
data: {source: {synthetic_linear: {features: 2, examples_per_device: 8}}, batch_size: 16, axes: [a, b]}
model: {layers: [{dense: 1}]}
loss: mean_squared_error
optimizer: {sgd: {}, learning_rate: 0.1}
train: {duration: 4 steps}
ensemble: {axis: trials, vary: {seed: [5, 6, 7]}}
)";

spec::Loaded loaded_with(const std::vector<std::string>& set) {
  spec::Overrides overrides;
  overrides.set = set;
  return spec::load_text(three_lines, "test.yaml", ".", overrides);
}

TEST_CASE("the axes of a continued ensemble are compared by name; its own may stand anywhere", "[train]") {
  const TemporaryFolder root;
  const std::string run = root / "run";
  train_setup_in(run, setup_of_text(three_lines));
  const auto notes = [&](const std::vector<std::string>& set) {
    return train::check_config_continues(train::read_run_config(run), loaded_with(set));
  };
  CHECK(notes({}).empty());
  CHECK(notes({"mesh.axes=[{a: 2}, {trials: 3}, {b: 2}]"}).empty());
  const std::string bits = ": sums run in another order, so the bits may differ from here on";
  CHECK(notes({"mesh.axes=[{trials: 3}, {b: 2}, {a: 2}]"}) ==
        std::vector<std::string>{"mesh.axes changes from a=2 b=2 to b=2 a=2" + bits});
  CHECK(notes({"mesh.axes.a=4"}) == std::vector<std::string>{"mesh.axes changes from a=2 b=2 to a=4 b=2" + bits});

  const auto refused = [&](const std::vector<std::string>& set) {
    try {
      notes(set);
    } catch (const Error& error) {
      REQUIRE(error.diagnostics().size() == 1);
      const Diagnostic& only = error.diagnostics().front();
      return only.message + " | " + only.place.file + ":" + std::to_string(only.place.column);
    }
    return std::string("accepted");
  };
  CHECK(refused({"mesh.axes.a=1", "mesh.axes.trials=2", "ensemble.vary.seed=[5, 6]"}) ==
        "--resume cannot change mesh.axes.trials: the run has 3, this config 2 | --set:18");
  CHECK(refused({"mesh.axes=[{trials: 3}, {c: 4}]", "data.axes=[c]"}) ==
        "--resume cannot change mesh.axes: the run has a=2 b=2, this config c=4 | --set:29");
  const std::string renamed = "--resume cannot change ensemble.axis: the run has trials, this config runs | --set:15";
  CHECK(refused({"ensemble.axis=runs", "mesh.axes=[{runs: 3}, {a: 2}, {b: 2}]"}) == renamed);
  CHECK(refused({"ensemble.axis=runs", "mesh.axes=[{runs: 2}, {a: 2}, {b: 2}]", "ensemble.vary.seed=[5, 6]"}) ==
        renamed);
  // data.seed is the seed by default, and only of an ensemble.
  CHECK(refused({"seed=5"}) == "--resume cannot change seed: the run has 4, this config 5 | --set:6");
  CHECK(refused({"data.seed=5"}) == "--resume cannot change data.seed: the run has 4, this config 5 | --set:11");
  CHECK(refused({"ensemble=null", "mesh.axes=[{a: 2}, {b: 2}]"}) ==
        "--resume cannot change ensemble: the run has {axis: trials, vary: {seed: [5, 6, 7]}}, this config nothing | "
        "test.yaml:0");
}

TEST_CASE("members that ended before the others are told when the others go on", "[train]") {
  const setup::Setup setup = setup_of_text(three_lines);
  run::RunState state;
  state.is_ensemble = true;
  state.step = 3;
  state.train_examples = setup.batch.dataset;
  state.batch_size = setup.batch.global;
  state.members.resize(3);
  for (run::MemberState& member : state.members) member.steps = 3;
  CHECK(train::check_data_continues(state, setup).empty());
  state.members[0].finished = "nonfinite";
  state.members[2].finished = "early_stopping";
  state.members[0].steps = state.members[2].steps = 2;
  state.members[0].left_behind = state.members[2].left_behind = true;
  CHECK(train::check_data_continues(state, setup) ==
        std::vector<std::string>{
            "member 0: ended by the guard against NaN and infinity before the others, and not continued",
            "member 2: ended by early stopping before the others, and not continued"});
  state.members[1] = state.members[0];  // nothing goes on, which is told as the end of the run
  CHECK(train::check_data_continues(state, setup).empty());
}

TEST_CASE("the best of a member that is not continued keeps its metric and mode", "[train]") {
  const auto setup_with = [](const std::string& best) {
    return setup_of_text(three_lines, {"data.validation=0.5", "data.batch_size=8", "train.eval_every=1 steps",
                                       "metrics=[mean_absolute_error]", "train.checkpoint.best=" + best});
  };
  const setup::Setup same = setup_with("{metric: loss}");
  run::RunState state;
  state.is_ensemble = true;
  state.step = 3;
  state.best_mode = "min";
  state.train_examples = same.batch.dataset;
  state.batch_size = same.batch.global;
  state.members.resize(3);
  for (run::MemberState& member : state.members) {
    member.steps = 3;
    member.best = run::Best{2, "loss", 0.5};
  }
  const auto refused = [&](const std::string& best) -> std::string {
    try {
      train::check_data_continues(state, setup_with(best));
    } catch (const Error& error) {
      const Diagnostic& only = error.diagnostics().front();
      return only.place.file + ": " + only.message + " | " + only.help;
    }
    return "accepted";
  };
  const std::string other = "{metric: mean_absolute_error}", most = "{metric: loss, mode: max}";
  CHECK(refused(other) == "accepted");  // all go on
  run::MemberState& ended = state.members[1];
  ended.finished = "nonfinite";
  ended.steps = 2;
  CHECK(refused("{metric: loss}") == "accepted");
  const std::string help = " | leave train.checkpoint.best as the run has it, or begin another run (--name)";
  CHECK(refused(other) ==
        "--set: --resume cannot change train.checkpoint.best from {metric: loss, mode: min} to {metric: "
        "mean_absolute_error, mode: min}: member 1 has ended, and its best checkpoint was selected by "
        "the former" +
            help);
  CHECK(refused(most).find("to {metric: loss, mode: max}: member 1 has ended, and") != std::string::npos);
  ended.best.reset();
  CHECK(refused(other) == "accepted");  // it has nothing to lose
}

TEST_CASE("state.json has what each member had last, its best and its seeds as lists", "[train]") {
  const TemporaryFolder root;
  const Trained trained = train_setup_in(root / "run", setup_of_text(three_lines));
  const run::RunState state = run::load_run_state(root / "run/checkpoints/last");
  REQUIRE(state.members.size() == 3);
  for (std::size_t m = 0; m < 3; ++m) {
    CHECK(state.members[m].seed == 5 + m);
    CHECK(state.members[m].data_seed == 4);
    CHECK(state.members[m].measures.at("train") == trained.ended.members[m].final_measures.front().second);
  }
  const std::string text = read_text(root / "run/checkpoints/last/state.json");
  CHECK(text.find("\"final\": [\n    {\n      \"train\": {\n        \"loss\": ") != std::string::npos);
  CHECK(text.find("\"seed\": [\n    5,\n    6,\n    7\n  ]") != std::string::npos);
}

}  // namespace
}  // namespace pmaptrain::testing
