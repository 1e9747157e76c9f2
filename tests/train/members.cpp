// An ensemble's run beside the runs of its members alone: records, checkpoints, and what ends a member.
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/evaluate/evaluator.h"
#include "core/run/checkpoint.h"
#include "core/setup/initialize.h"
#include "core/setup/make_setup.h"
#include "core/train/resume.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/words.h"

namespace pmaptrain::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// Members learn at several speeds, stop early at several steps, and have their best evaluations at several.
const std::string ensemble = R"(name: ensemble
seed: 0
mesh: {axes: [{trials: 3}, {shards: 2}]}
data:
  source: {synthetic_images: {height: 4, width: 4, channels: 1, classes: 3, train: 60, test: 21, noise: 1.0}}
  batch_size: 8
  validation: 0.2
  seed: 5
model: {layers: [flatten, {dropout: 0.2}, {dense: 8}, relu, {dense: 3}]}
loss: softmax_cross_entropy
metrics: [accuracy]
optimizer: {adam: {}, learning_rate: 0.01, reduce_on_plateau: {metric: loss, patience: 1, factor: 0.5}}
train:
  duration: 40 steps
  log_every: 4 steps
  eval_every: 3 steps
  checkpoint: {every: 5 steps, keep: 2, best: {metric: loss}}
  early_stopping: {metric: loss, patience: 2}
  ema: {decay: 0.8}
ensemble:
  axis: trials
  vary: {seed: [0, 1, 2], optimizer.learning_rate: [0.3, 0.01, 0.002]}
)";

setup::Setup trained_alone(const setup::Setup& of, std::int64_t member) {
  spec::Loaded loaded = of.loaded;
  loaded.spec = spec::Spec(of.member_spec(member));
  return setup::make_setup(std::move(loaded));
}

// What the files of a run say of a member: of a run without an ensemble, of its only one.
struct OfMember {
  std::vector<std::string> metrics;
  run::Tensors parameters, state, averages;
  run::Tensors best_parameters;
  ordered_json final, best;
};

run::Tensors slices(const run::Tensors& tensors, std::optional<std::int64_t> member) {
  if (!member) return tensors;
  run::Tensors found = tensors;
  for (auto& [name, tensor] : found) {
    const auto size = static_cast<std::ptrdiff_t>(tensor.bytes.size()) / tensor.shape.front();
    const auto begin = tensors.at(name).bytes.begin() + *member * size;
    tensor.bytes.assign(begin, begin + size);
    tensor.shape.erase(tensor.shape.begin());
  }
  return found;
}

OfMember read_member(const fs::path& run, std::optional<std::int64_t> member) {
  OfMember found;
  std::istringstream lines(read_text(run / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    auto object = ordered_json::parse(line);
    REQUIRE(object.contains("member") == member.has_value());
    if (member && object["member"] != *member) continue;
    for (const char* key : {"member", "seconds", "examples_per_second"}) object.erase(key);
    found.metrics.push_back(object.dump());
  }
  const auto tensors = [&](const std::string& file) {
    const fs::path path = run / "checkpoints" / file;
    return fs::exists(path) ? slices(run::read_safetensors(path.string()), member) : run::Tensors();
  };
  found.parameters = tensors("last/params.safetensors");
  found.state = tensors("last/optimizer.safetensors");
  found.averages = tensors("last/ema.safetensors");
  found.best_parameters = tensors("best/params.safetensors");
  const auto summary = ordered_json::parse(read_text(run / "summary.json"));
  const auto of = [&](const char* key) {
    return member ? summary[key].at(static_cast<std::size_t>(*member)) : summary[key];
  };
  found.final = of("final");
  found.best = of("best");
  return found;
}

void check_same(const OfMember& found, const OfMember& expected) {
  CHECK(found.metrics == expected.metrics);
  CHECK(found.parameters == expected.parameters);
  CHECK(found.state == expected.state);
  CHECK(found.averages == expected.averages);
  CHECK(found.best_parameters == expected.best_parameters);
  CHECK(found.final == expected.final);
  CHECK(found.best == expected.best);
}

// Puts a NaN into a parameter of a member after a step.
auto damage(std::int64_t member, std::int64_t at) {
  return [member, at](Module& module, std::int64_t step) {
    if (step != at) return;
    const Handle bias = module.input("dense_1.bias");
    const std::vector<float> bad(module.slice_bytes(bias) / sizeof(float), std::numeric_limits<float>::quiet_NaN());
    module.wait(module.write(bias, {every_device, member}, std::as_bytes(std::span(bad))));
  };
}

// Every member of an ensemble beside its run alone. `damaged` gets a NaN after step 5, in its own run too.
Trained check_trained_alone(const setup::Setup& setup, std::optional<std::int64_t> damaged = std::nullopt) {
  const TemporaryFolder root;
  train::SessionOptions options;
  if (damaged) options.between_steps = damage(*damaged, 5);
  Trained together = train_setup_in(root / "together", setup, options);
  for (std::int64_t m = 0; m < spec::members(setup.spec()); ++m) {
    INFO("member " << m);
    const fs::path run = root / ("alone" + std::to_string(m));
    options.between_steps = damaged == m ? damage(0, 5) : std::function<void(Module&, std::int64_t)>();
    const Trained own = train_setup_in(run, trained_alone(setup, m), options);
    check_same(read_member(root / "together", m), read_member(run, std::nullopt));
    CHECK(together.ended.members[static_cast<std::size_t>(m)].steps == own.ended.steps);
  }
  return together;
}

TEST_CASE("every member's lines, checkpoints and results are those of its run alone", "[train]") {
  const Trained trained = check_trained_alone(setup_of_text(ensemble, {any_backend()}));
  // The members ended, and were best, at several steps.
  const auto& members = trained.ended.members;
  CHECK(members[0].steps < members[2].steps);
  CHECK(members[0].reason == "early_stopping");
  CHECK(members[0].best->step != members[2].best->step);
}

TEST_CASE("a member that is not finite keeps its last good parameters while the others go on", "[train]") {
  const Trained trained = check_trained_alone(setup_of_text(ensemble, {any_backend()}), 1);
  CHECK(trained.ended.exit_status == 0);
  CHECK(trained.ended.members[1].reason == "nonfinite");
  CHECK(trained.ended.members[1].steps == 5);
  const auto warnings = trained.of<run::Warned>();
  CHECK(std::any_of(warnings.begin(), warnings.end(), [](const run::Warned& warned) {
    return warned.stops &&
           warned.text.starts_with("member 1: step 6: the loss, the gradient or the update is not finite");
  }));
}

TEST_CASE("a run whose members are all stopped by the guard ends with its exit status", "[train]") {
  const TemporaryFolder root;
  train::SessionOptions options;
  options.between_steps = [](Module& module, std::int64_t step) {
    for (const std::int64_t member : {0, 1, 2}) damage(member, 4 + 3 * member)(module, step);
  };
  const setup::Setup setup = setup_of_text(ensemble, {"train.early_stopping=null"});
  const Trained trained = train_setup_in(root / "run", setup, options);
  CHECK(trained.ended.reason == "guard");
  CHECK(trained.ended.exit_status == 5);
  CHECK(trained.ended.steps == 10);
  for (std::size_t m = 0; m < 3; ++m) CHECK(trained.ended.members[m].steps == static_cast<std::int64_t>(4 + 3 * m));
  // It has ended, and resuming says so.
  const auto point = train::find_resume_point(root / "run");
  REQUIRE(point);
  const auto finished =
      train::find_finished(root / "run", point->checkpoint.state, setup.spec().train, setup.timetable, std::nullopt);
  REQUIRE(finished);
  CHECK(finished->ended.exit_status == 5);
  CHECK(finished->advice == "train.on_nonfinite: skip continues it");
  const std::vector<std::string> why = train::why_finished(point->checkpoint.state);
  REQUIRE(why.size() == 3);
  CHECK(why.front().starts_with("member 0: step 5: "));
}

TEST_CASE("why a run is finished is one text for all members that have it in common", "[train]") {
  run::RunState state;
  CHECK(train::why_finished(state).empty());
  state.members.front().finished_why = "one";
  CHECK(train::why_finished(state) == std::vector<std::string>{"one"});
  state.is_ensemble = true;
  state.members.resize(64);
  for (run::MemberState& member : state.members) member.finished_why = "no better loss";
  state.members[5].finished_why = "not finite";
  CHECK(train::why_finished(state) ==
        std::vector<std::string>{"members 0, 1, 2, 3, 4, 6, 7, 8 and 55 more: no better loss", "member 5: not finite"});
}

TEST_CASE("the factor of a plateau is each member's own", "[train]") {
  check_trained_alone(setup_of_text(
      ensemble, {"train.early_stopping=null", "ensemble.vary.optimizer.reduce_on_plateau.factor=[0.9, 0.5, 0.1]"}));
}

// The NaN stays in the parameter, so every step after it is left out.
TEST_CASE("with on_nonfinite: skip a member leaves out its own steps alone, and they are counted", "[train]") {
  const Trained trained = check_trained_alone(
      setup_of_text(ensemble, {any_backend(), "train.on_nonfinite=skip", "train.early_stopping=null"}), 1);
  CHECK(trained.ended.exit_status == 0);
  CHECK(trained.ended.members[0].steps_skipped == 0);
  CHECK(trained.ended.members[1].steps_skipped == 35);
  CHECK(trained.ended.members[1].steps == 40);
  CHECK(trained.ended.members[2].steps_skipped == 0);
  CHECK(trained.ended.steps_skipped() == 35);
}

TEST_CASE("a replica that diverges ends its member, which is named", "[train]") {
  const TemporaryFolder root;
  train::SessionOptions options;
  options.verify_replicas = true;
  options.between_steps = [](Module& module, std::int64_t step) {
    if (step != 5) return;
    const Handle bias = module.input("dense_1.bias");
    const std::vector<std::byte> other(module.slice_bytes(bias), std::byte{1});
    module.wait(module.write(bias, {1, 2}, other));
  };
  const Trained trained =
      train_setup_in(root / "run", setup_of_text(ensemble, {any_backend(), "train.early_stopping=null"}), options);
  CHECK(trained.ended.exit_status == 0);
  CHECK(trained.ended.members[2].reason == "replicas");
  CHECK(trained.ended.members[2].steps == 8);
  CHECK(trained.ended.members[1].steps == 40);
  const auto warnings = trained.of<run::Warned>();
  CHECK(std::any_of(warnings.begin(), warnings.end(), [](const run::Warned& warned) {
    return warned.stops && warned.text.starts_with("member 2: step 8: ") &&
           test::contains(warned.text, "differs on device");
  }));
}

TEST_CASE("a loss that rises abruptly ends its member with action: halt", "[train]") {
  const TemporaryFolder root;
  train::SessionOptions options;
  options.between_steps = [](Module& module, std::int64_t step) {
    if (step != 20) return;
    const Handle bias = module.input("dense_1.bias");
    const std::vector<float> large = {50.0F, -50.0F, 0.0F};
    module.wait(module.write(bias, {every_device, 0}, std::as_bytes(std::span(large))));
  };
  const Trained trained =
      train_setup_in(root / "run",
                     setup_of_text(ensemble, {"train.early_stopping=null", "ensemble.vary={seed: [0, 1, 2]}",
                                              "train.loss_spike={factor: 3.0, window: 8 steps, action: halt}"}),
                     options);
  CHECK(trained.ended.exit_status == 0);
  CHECK(trained.ended.members[0].reason == "loss_spike");
  CHECK(trained.ended.members[0].steps == 24);
  CHECK(trained.ended.members[1].reason.empty());
  CHECK(trained.ended.members[2].steps == 40);
}

// Stops after each of these steps in turn, and continues.
void train_in_parts(const fs::path& run, const std::vector<std::string>& set, const std::vector<std::int64_t>& stops) {
  for (std::size_t i = 0; i <= stops.size(); ++i) {
    train::SessionOptions options;
    options.between_steps = damage(1, 5);
    if (i < stops.size()) options.max_steps = stops[i];
    std::optional<train::ResumePoint> point;
    if (i > 0) {
      point = train::find_resume_point(run);
      REQUIRE(point);
      const run::RunState& state = point->checkpoint.state;
      options.folder.resume = true;
      options.folder.resumed = {state.step, run::best_folder(state), state.metrics_bytes};
      options.resume = &*point;
    }
    train_setup_in(run, setup_of_text(ensemble, set), options);
  }
}

TEST_CASE("an ensemble that is stopped and continued has the bits of one that is not", "[train]") {
  const TemporaryFolder root;
  const std::vector<std::string> set = {"train.duration=24 steps"};
  train_in_parts(root / "whole", set, {});
  for (const std::vector<std::int64_t>& stops :
       {std::vector<std::int64_t>{6}, {8}, {9}, {12}, {1, 2, 3, 7, 8, 13, 15, 16, 23}}) {
    INFO(stops.front() << " and " << stops.size() - 1 << " more");
    const fs::path run = root / ("parts" + std::to_string(stops.front()));
    train_in_parts(run, set, stops);
    for (std::int64_t m = 0; m < 3; ++m) {
      INFO("member " << m);
      check_same(read_member(run, m), read_member(root / "whole", m));
    }
  }
}

TEST_CASE("members that are not finite at several steps between two lines have the lines of their own", "[train]") {
  const TemporaryFolder root;
  const auto train_until = [&](const std::string& name, std::optional<std::int64_t> stop) {
    train::SessionOptions options;
    options.max_steps = stop;
    options.between_steps = [](Module& module, std::int64_t step) {
      damage(0, 2)(module, step);
      damage(2, 3)(module, step);
    };
    std::optional<train::ResumePoint> point = train::find_resume_point(root / name);
    if (point) {
      const run::RunState& state = point->checkpoint.state;
      options.folder.resume = true;
      options.folder.resumed = {state.step, run::best_folder(state), state.metrics_bytes};
      options.resume = &*point;
    }
    const std::vector<std::string> set = {"train.duration=8 steps", "train.eval_every=8 steps",
                                          "train.early_stopping=null"};
    return train_setup_in(root / name, setup_of_text(ensemble, set), options);
  };
  const Trained whole = train_until("whole", std::nullopt);
  std::vector<std::vector<std::int64_t>> steps(3);
  for (const run::Logged& line : whole.of<run::Logged>()) {
    steps[static_cast<std::size_t>(*line.member)].push_back(line.step);
  }
  CHECK(steps[0] == std::vector<std::int64_t>{1, 3});
  CHECK(steps[1] == std::vector<std::int64_t>{1, 4, 8});
  CHECK(steps[2] == std::vector<std::int64_t>{1, 4});
  for (const std::int64_t stop : {4, 6}) {
    INFO("stopped at step " << stop);
    const std::string name = "parts" + std::to_string(stop);
    train_until(name, stop);
    CHECK(train_until(name, std::nullopt).metrics == whole.metrics);
  }
}

run::Tensors initial_values(const setup::Setup& setup, std::int64_t member) {
  const spec::Spec& spec = setup.member_spec(member);
  const setup::InitialValues values(setup.model, spec.model, spec.seed, setup.membership(member));
  run::Tensors found;
  for (const model::Parameter& parameter : setup.model.parameters) {
    found[parameter.name] = {setup.model.dtype, parameter.shape, values.of(parameter)};
  }
  return found;
}

TEST_CASE("model.init.from takes the members of an ensemble, or one of them, or a run without", "[train]") {
  const TemporaryFolder root;
  const std::string run = root / "run", file = run + "/checkpoints/step-00000003/params.safetensors";
  train_setup_in(run, setup_of_text(ensemble, {"train.duration=3 steps", "train.ema=null"}));
  const run::Tensors all = run::read_safetensors(file);
  const auto from = [](const std::string& text) { return "model.init={from: " + text + "}"; };
  const std::vector<std::string> solo = {"ensemble=null", "mesh.axes={shards: 2}"};
  const auto alone_from = [&](const std::string& text) {
    return setup_of_text(ensemble, {solo[0], solo[1], from(text)});
  };
  for (const std::string& text : {run, file}) {
    const setup::Setup setup = setup_of_text(ensemble, {from(text)});
    for (std::int64_t m = 0; m < 3; ++m) CHECK(initial_values(setup, m) == slices(all, m));
    CHECK(test::contains(setup.source.notes.back(), "each member its own"));
    const setup::Setup one = setup_of_text(ensemble, {from("{path: " + text + ", member: 2}")});
    for (std::int64_t m = 0; m < 3; ++m) CHECK(initial_values(one, m) == slices(all, 2));
    CHECK(initial_values(alone_from("{path: " + text + ", member: 1}"), 0) == slices(all, 1));
    const auto refused = [&](auto&& make) { return test::refusal(make, ExitStatus::usage); };
    CHECK(refused([&] { alone_from(text); }) ==
          file + " has the 3 members of an ensemble | model.init.from.member: 0 to 2 chooses one");
    CHECK(refused([&] { alone_from("{path: " + text + ", member: 3}"); }) ==
          file +
              " has the 3 members of an ensemble, and no member 3 | members count from 0: model.init.from.member: 0 to "
              "2 chooses one");
    CHECK(
        refused([&] {
          setup_of_text(ensemble, {"mesh.axes=[{trials: 2}, {shards: 2}]", "ensemble.vary={seed: [1, 2]}", from(text)});
        }) == file +
                  " has the 3 members of an ensemble, and this ensemble has 2 | model.init.from.member: 0 to 2 "
                  "chooses one, from which every member starts");
  }
  const std::string own = root / "own";
  const Trained trained =
      train_setup_in(own, setup_of_text(ensemble, {solo[0], solo[1], "train.duration=3 steps", "train.ema=null"}));
  const setup::Setup setup = setup_of_text(ensemble, {from(own)});
  for (std::int64_t m = 0; m < 3; ++m) CHECK(initial_values(setup, m) == trained.parameters);
  CHECK(test::refusal([&] { alone_from("{path: " + own + ", member: 0}"); }, ExitStatus::usage) ==
        own +
            "/checkpoints/step-00000003/params.safetensors is not of an ensemble, and has no members | leave out "
            "model.init.from.member");
}

TEST_CASE("a member without a best evaluation has no best checkpoint to evaluate or to start from", "[train]") {
  const TemporaryFolder root;
  const std::string run = root / "run";
  train::SessionOptions options;
  options.between_steps = damage(1, 1);
  const setup::Setup setup = setup_of_text(ensemble, {"train.duration=6 steps", "train.ema=null"});
  CHECK_FALSE(train_setup_in(run, setup, options).ended.members[1].best);
  const auto evaluate = [&](const char* checkpoint, std::optional<std::int64_t> member) {
    return evaluate::evaluate_checkpoint(setup.loaded, run, checkpoint, "validation", spec::Weights::ema, member);
  };
  const std::string none = "member 1 has no best checkpoint: no evaluation gave it a best value | ";
  CHECK(test::refusal([&] { evaluate("best", 1); }, ExitStatus::usage) ==
        none + "--checkpoint last takes the parameters after its last step");
  CHECK(evaluate("best", 2).size() == 1);
  CHECK(evaluate("last", 1).size() == 1);
  const auto both = evaluate("best", std::nullopt);
  REQUIRE(both.size() == 2);
  CHECK(both.back().member == 2);
  CHECK(both.back().measures == evaluate("best", 2).front().measures);
  const auto start = [&](const std::string& from) {
    setup_of_text(ensemble, {"train.ema=null", "model.init={from: {path: " + run + ", " + from + "}}"});
  };
  const std::string by_key =
      "model.init.from.member chooses a member that has one; model.init.from.checkpoint: last takes the parameters "
      "after its last step";
  CHECK(test::refusal([&] { start("checkpoint: best, member: 1"); }, ExitStatus::usage) == none + by_key);
  CHECK(test::refusal([&] { start("checkpoint: best"); }, ExitStatus::usage) == none + by_key);
  CHECK(test::refusal([&] { start("checkpoint: best, member: 2"); }, ExitStatus::usage) == "accepted");
}

TEST_CASE("a member without best parameters is reported under its last ones alone", "[train]") {
  const TemporaryFolder root;
  train::SessionOptions options;
  options.between_steps = damage(1, 6);  // before the only evaluation, and after the guard has looked
  const setup::Setup setup =
      setup_of_text(ensemble, {"train.duration=6 steps", "train.eval_every=6 steps", "train.ema=null"});
  const Trained trained = train_setup_in(root / "run", setup, options);
  REQUIRE(trained.ended.members[1].reason.empty());
  for (std::size_t m = 0; m < 3; ++m) {
    INFO("member " << m);
    const bool has_best = m != 1;
    CHECK(trained.ended.members[m].best.has_value() == has_best);
    CHECK(trained.ended.members[m].selected.has_value() == has_best);
    CHECK(trained.ended.members[m].final_measures.back().first == "test");
  }
}

TEST_CASE("an evaluation has every member of a checkpoint, or one", "[train]") {
  const TemporaryFolder root;
  const std::string run = root / "run";
  const setup::Setup setup = setup_of_text(ensemble, {any_backend(), "train.duration=6 steps"});
  const Trained trained = train_setup_in(run, setup);
  const auto measures = [&](const char* checkpoint, std::optional<std::int64_t> member) {
    return evaluate::evaluate_checkpoint(setup.loaded, run, checkpoint, "validation", spec::Weights::ema, member);
  };
  const auto all = measures("last", std::nullopt);
  REQUIRE(all.size() == 3);
  for (std::int64_t m = 0; m < 3; ++m) {
    INFO("member " << m);
    const auto member = static_cast<std::size_t>(m);
    const auto one = measures("last", m);
    REQUIRE(one.size() == 1);
    CHECK(one.front().member == m);
    CHECK(all[member].member == m);
    CHECK(one.front().measures == all[member].measures);
    CHECK(one.front().measures == trained.ended.members[member].final_measures[1].second);
    const run::Best& best = *trained.ended.members[member].best;
    CHECK(measures("best", m).front().measures.front().second == best.value);
    CHECK(measures("best", std::nullopt)[member].checkpoint == run::checkpoint_name(best.step));
    CHECK(one.front().checkpoint == "step-00000006");
  }
  CHECK(test::refusal([&] { measures("last", 3); }, ExitStatus::usage) ==
        "the ensemble has no member 3 | its members are 0 to 2");
  const setup::Setup other = setup_of_text(ensemble, {"ensemble=null", "mesh.axes={shards: 2}"});
  CHECK(test::refusal([&] { evaluate::evaluate_checkpoint(other.loaded, run, "last"); }, ExitStatus::usage) ==
        "the config has no ensemble, the checkpoint 3 members | use it with the run's own ensemble; --member N "
        "chooses one member");
}

}  // namespace
}  // namespace pmaptrain::testing
