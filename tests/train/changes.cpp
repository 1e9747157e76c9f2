// --change of a run that is resumed: how it goes on, what it leaves in the run folder, and what it goes by when it is
// resumed again.
#include "core/train/changes.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/setup/make_setup.h"
#include "core/spec/load.h"
#include "core/train/resume.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

namespace fs = std::filesystem;

using Texts = std::vector<std::string>;

// Eleven steps, three to an epoch, each with its line, and a checkpoint every second.
Texts eleven(Texts more = {}) {
  more.insert(more.begin(), {"train.duration=11 steps", "train.checkpoint={every: 2 steps, keep: 9}"});
  return more;
}

const std::string rate = "optimizer.learning_rate=";

class Run {
 public:
  explicit Run(Texts set = {}, const std::string& text = small_images) : set_(std::move(set)), text_(text) {}

  Trained begin(std::int64_t steps) const { return train_setup_in(path(), setup_of_text(text_, set_), until(steps)); }

  // As `pmaptrain run --resume`.
  Trained resume(const Texts& changes = {}, train::SessionOptions options = {}) const {
    spec::Overrides overrides;
    overrides.set = set_;
    spec::Loaded loaded = spec::load_text(text_, "test.yaml", ".", overrides);
    std::optional<train::ResumePoint> point = train::find_resume_point(path());
    REQUIRE(point);
    run::RunState& state = point->checkpoint.state;
    const train::RunConfig config = train::read_run_config(path());
    train::check_config_continues(config, loaded);
    for (std::string& warning : train::apply_changes(config, changes, loaded, state)) {
      loaded.warnings.push_back(std::move(warning));
    }
    const setup::Setup setup = setup::make_setup(std::move(loaded), train::schedule_origin(state));
    train::check_data_continues(state, setup);
    options.resume = &*point;
    options.folder.resume = true;
    options.folder.resumed = {state.step, run::best_folder(state), state.metrics_bytes};
    return train_setup_in(path(), setup, options);
  }

  fs::path path() const { return root_.path() / "run"; }
  std::string config() const { return read_text(path() / "config.yaml"); }
  nlohmann::json json(const std::string& file) const { return nlohmann::json::parse(read_text(path() / file)); }

 private:
  const TemporaryFolder root_;
  const Texts set_;
  const std::string text_;
};

// Without the events `change`.
Texts steps_of(const Trained& trained) {
  Texts lines = trained.metrics;
  std::erase_if(lines, [](const std::string& line) { return line.starts_with("{\"event\":\"change\""); });
  return lines;
}

// The rates of the steps that a process took.
std::vector<double> rates(const Trained& trained) {
  std::vector<double> all;
  for (const run::Logged& line : trained.of<run::Logged>()) all.push_back(line.learning_rate);
  return all;
}

void check_rates(const Trained& trained, const std::vector<double>& expected) {
  const std::vector<double> found = rates(trained);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO(i);
    CHECK(found[i] == Approx(expected[i]).epsilon(1e-6));
  }
}

Texts warnings(const Trained& trained) {
  Texts all;
  for (const run::Warned& warned : trained.of<run::Warned>()) all.push_back(warned.text);
  return all;
}

}  // namespace

TEST_CASE("a changed rate goes on with the bits of a schedule that has the change as its boundary", "[train]") {
  const std::string backend = any_backend();
  const Run run(eleven({backend}));
  run.begin(5);
  const Trained changed = run.resume({rate + "0.001"});
  const Trained whole = train_setup(setup_of_text(
      small_images,
      eleven({backend, rate + "{piecewise_constant: {init_value: 0.01, boundaries_and_scales: [[5 steps, 0.1]]}}"})));
  CHECK(changed.parameters == whole.parameters);
  CHECK(changed.state == whole.state);  // of adam, and the count of updates
  CHECK(steps_of(changed) == steps_of(whole));
}

TEST_CASE("a change is told in metrics.jsonl, state.json, summary.json and the log", "[train]") {
  const Run run(eleven());
  run.begin(4);
  const std::string first = run.config();
  const Trained changed = run.resume({rate + "0.001", "optimizer.adam.b1=0.8"});
  const auto before_step = std::find_if(changed.metrics.begin(), changed.metrics.end(), [](const std::string& line) {
    return line.starts_with(R"({"event":"step","step":5,)");
  });
  REQUIRE(before_step - changed.metrics.begin() >= 2);
  CHECK(*(before_step - 2) ==
        R"({"event":"change","step":4,"epoch":2,"key":"optimizer.learning_rate","before":0.01,"value":0.001})");
  CHECK(*(before_step - 1) ==
        R"({"event":"change","step":4,"epoch":2,"key":"optimizer.adam.b1","before":0.9,"value":0.8})");
  CHECK(run.json("checkpoints/step-00000004/state.json")["changes"].empty());
  for (const char* const later : {"step-00000006", "step-00000011"}) {
    CHECK(run.json(std::string("checkpoints/") + later + "/state.json")["changes"] ==
          nlohmann::json::parse(R"([{"step": 4, "key": "optimizer.learning_rate", "value": "0.001"},
                                    {"step": 4, "key": "optimizer.adam.b1", "value": "0.8"}])"));
  }
  CHECK(run.json("summary.json")["changes"] ==
        nlohmann::json::parse(R"([{"step": 4, "key": "optimizer.learning_rate", "before": 0.01, "value": 0.001},
                                  {"step": 4, "key": "optimizer.adam.b1", "before": 0.9, "value": 0.8}])"));
  CHECK(test::contains(read_text(run.path() / "log.txt"), "\noptimizer.adam.b1 changes from 0.9 to 0.8\n"));
  CHECK(run.config() == first +
                            "\n# Made by run --resume --change; another run of this config does not repeat them.\n"
                            "x-changes:\n"
                            "  - {step: 4, key: optimizer.learning_rate, value: 0.001}\n"
                            "  - {step: 4, key: optimizer.adam.b1, value: 0.8}\n");
  CHECK(run.json("summary.json")["config_hash"] == run.json("checkpoints/step-00000004/state.json")["config_hash"]);
}

TEST_CASE("a new schedule counts from the change and lasts what is left of the run", "[train]") {
  const Run run(eleven());
  run.begin(5);
  const Trained changed = run.resume({rate + "{linear: {init_value: 0.06, end_value: 0.0}}"});
  check_rates(changed, {0.06, 0.05, 0.04, 0.03, 0.02, 0.01});
  CHECK(test::contains(run.config(), "{linear: {init_value: 0.06, end_value: 0.0, transition: 6 steps}}"));
  CHECK(run.json("checkpoints/last/state.json")["schedule_began"] == 5);
}

TEST_CASE("inside join, what is left of the run counts from the change too", "[train]") {
  const Run run(eleven());
  run.begin(5);
  const std::string join = "{join: {schedules: [0.5, {linear: {init_value: 0.4, end_value: 0.0}}], boundaries: [2]}}";
  check_rates(run.resume({rate + join}), {0.5, 0.5, 0.4, 0.3, 0.2, 0.1});
}

TEST_CASE("a number that changes inside a schedule keeps its count", "[train]") {
  const Run run(eleven({rate + "{linear: {init_value: 0.12, end_value: 0.0, transition: 12}}"}));
  run.begin(5);
  const Trained changed = run.resume({"optimizer.learning_rate.linear.init_value=0.24"});
  check_rates(changed, {0.14, 0.12, 0.1, 0.08, 0.06, 0.04});
  CHECK(run.json("checkpoints/last/state.json")["schedule_began"].is_null());
}

TEST_CASE("a run with changes that is stopped and continued has the bits of one that is not", "[train]") {
  for (const std::string value : {"{linear: {init_value: 0.06, end_value: 0.0}}", "0.001"}) {
    INFO(value);
    const Run once(eleven()), twice(eleven());
    once.begin(4);
    const Trained whole = once.resume({rate + value});
    twice.begin(4);
    twice.resume({rate + value}, until(7));
    const Trained continued = twice.resume();
    CHECK(continued.same_bits(whole));
    CHECK(twice.config() == once.config());
    CHECK(twice.json("summary.json")["changes"] == once.json("summary.json")["changes"]);
  }
}

TEST_CASE("changes at several steps apply one after the other", "[train]") {
  const Run run(eleven());
  run.begin(2);
  run.resume({rate + "{linear: {init_value: 0.09, end_value: 0.0}}"}, until(4));
  run.resume({"optimizer.learning_rate.linear.init_value=0.9"}, until(6));
  const Trained last = run.resume({"optimizer.adam.b2=0.99"});
  check_rates(last, {0.5, 0.4, 0.3, 0.2, 0.1});
  Texts keys;
  const nlohmann::json summary = run.json("summary.json");
  for (const auto& change : summary["changes"]) keys.push_back(change["key"]);
  CHECK(keys == Texts{"optimizer.learning_rate", "optimizer.learning_rate.linear.init_value", "optimizer.adam.b2"});
}

TEST_CASE("a change that was recorded before a kill is made again without --change, and may be replaced", "[train]") {
  const Run whole(eleven()), killed(eleven()), replaced(eleven());
  whole.begin(4);
  const Trained expected = whole.resume({rate + "0.001"});
  // What a kill leaves between the record and the first step.
  const std::string record = "\nx-changes:\n  - {step: 4, key: optimizer.learning_rate, value: 0.001}\n";
  for (const Run* run : {&killed, &replaced}) {
    run->begin(4);
    test::write_text(run->path() / "config.yaml", run->config() + record);
    fs::remove(run->path() / "summary.json");
  }
  CHECK(killed.resume().same_bits(expected));
  CHECK(killed.config() == whole.config());
  check_rates(replaced.resume({rate + "0.005"}, until(5)), {0.005});
  CHECK(replaced.json("summary.json")["changes"].size() == 1);
}

TEST_CASE("a run that goes on from before a change does without it, which a warning says", "[train]") {
  const Run run(eleven());
  run.begin(4);
  run.resume({rate + "0.001"}, until(6));
  for (const char* const gone : {"step-00000004", "step-00000006"}) fs::remove_all(run.path() / "checkpoints" / gone);
  const Trained resumed = run.resume();
  CHECK(warnings(resumed).front() ==
        "the run goes on after step 2, so its change of optimizer.learning_rate after step 4 is not repeated; --change "
        "optimizer.learning_rate=0.001 makes it again");
  CHECK(resumed.same_bits(train_setup(setup_of_text(small_images, eleven()))));
  CHECK_FALSE(test::contains(run.config(), "x-changes"));
}

TEST_CASE("a changed rate begins without the falls on a plateau, and another change keeps them", "[train]") {
  const std::string still =
      "optimizer={sgd: {}, learning_rate: 1.0e-30, reduce_on_plateau: {metric: loss, patience: 1, factor: 0.5}}";
  const Run run(eleven({still, "train.eval_every=1 step"}));
  run.begin(5);
  CHECK(run.json("checkpoints/last/state.json")["reduce_on_plateau"]["scale"] == 0.0625);
  check_rates(run.resume({"optimizer.reduce_on_plateau.factor=0.25"}, until(7)), {0.0625e-30, 0.015625e-30});
  check_rates(run.resume({rate + "1.0e-20"}, until(9)), {1e-20, 0.25e-20});
}

TEST_CASE("base_batch_size multiplies a changed rate and a new schedule", "[train]") {
  const Run run(eleven({"optimizer.base_batch_size=8"}));
  run.begin(3);
  check_rates(run.resume({rate + "0.02"}, until(5)), {0.04, 0.04});
  check_rates(run.resume({rate + "{linear: {init_value: 0.03, end_value: 0.0}}"}, until(7)), {0.06, 0.05});
}

TEST_CASE("a change is of all members of an ensemble, each with its own count of updates", "[train]") {
  const Texts set = {"mesh.axes=[{members: 2}, {devices: 2}]",
                     "ensemble={axis: members, vary: {seed: [3, 4], optimizer.adam.b1: [0.9, 0.8]}}"};
  const Run run(eleven(set));
  run.begin(5);
  const Trained changed = run.resume({rate + "{linear: {init_value: 0.06, end_value: 0.0}}"}, until(7));
  check_rates(changed, {0.06, 0.06, 0.05, 0.05});
  CHECK(run.json("checkpoints/last/state.json")["schedule_began"] == nlohmann::json::parse("[5, 5]"));

  // As each alone, with the schedule of the whole run.
  const Run constant(eleven(set));
  constant.begin(5);
  Texts whole = eleven(set);
  whole.push_back(rate + "{piecewise_constant: {init_value: 0.01, boundaries_and_scales: [[5 steps, 0.1]]}}");
  const Trained expected = train_setup(setup_of_text(small_images, whole));
  const Trained found = constant.resume({rate + "0.001"});
  CHECK(found.parameters == expected.parameters);
  CHECK(found.state == expected.state);
}

TEST_CASE("members that left out steps have counts of their own in a new schedule", "[train]") {
  spec::Overrides overrides;
  overrides.set = {"mesh.axes=[{members: 2}, {devices: 2}]", "ensemble={axis: members, vary: {seed: [3, 4]}}",
                   rate + "{linear: {init_value: 0.06, end_value: 0.0, transition: 6}}"};
  const setup::Setup setup =
      setup::make_setup(spec::load_text(small_images, "test.yaml", ".", overrides), setup::ScheduleOrigin(6, {5, 3}));
  for (const auto& [member, update] : {std::pair{0, 6}, std::pair{1, 4}}) {
    CHECK(step::learning_rate_at(setup.optimizer(member), update) == Approx(0.06));
    CHECK(step::learning_rate_at(setup.optimizer(member), update + 1) == Approx(0.05));
  }
}

TEST_CASE("a run without a step left has nothing to change", "[train]") {
  const Run run(eleven());
  run.begin(11);
  try {
    run.resume({rate + "0.001"});
    FAIL("it was accepted");
  } catch (const Error& error) {
    CHECK(error.status() == ExitStatus::usage);
    const Diagnostic& told = error.diagnostics().front();
    CHECK(told.message == "the run has ended after step 11, so no step is left that a change applies to");
    CHECK(told.help == "a longer train.duration continues it");
    CHECK(told.place.file == "--change");
    CHECK(told.place.excerpt == rate + "0.001");
  }
}

TEST_CASE("a run beyond the end of its new schedule tells the rate from there on", "[train]") {
  const std::string linear = rate + "{linear: {init_value: 0.06, end_value: 0.01}}";
  const Run run(eleven());
  run.begin(5);
  run.resume({linear});
  spec::Overrides overrides;
  overrides.set = eleven({"train.duration=13 steps"});
  spec::Loaded loaded = spec::load_text(small_images, "test.yaml", ".", overrides);
  run::RunState state = train::find_resume_point(run.path())->checkpoint.state;
  train::apply_changes(train::read_run_config(run.path()), {}, loaded, state);
  const setup::Setup setup = setup::make_setup(std::move(loaded), train::schedule_origin(state));
  CHECK(train::check_data_continues(state, setup) ==
        Texts{"the schedule of the learning rate was for 6 steps; the rate from there on is 0.01"});
}
