// Runs of several processes of which only process 0 sees the run folder: they resume, begin with the parameters of
// another run, and evaluate their best parameters, with the bits of one process.
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/setup/initialize.h"
#include "core/setup/make_setup.h"
#include "core/train/changes.h"
#include "core/train/resume.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/train/in_processes.h"
#include "tests/words.h"

namespace pmaptrain::testing::seen_by_first {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;
using run::FirstProcess;

spec::Loaded loaded_of(Texts set) {
  spec::Overrides overrides;
  overrides.set = std::move(set);
  return spec::load_text(small_images, "test.yaml", ".", overrides);
}

// As `pmaptrain run --resume` with these changes.
Ends resume(int processes, const fs::path& run, const Texts& set, const Texts& changes = {}) {
  std::vector<std::optional<train::ResumePoint>> points(static_cast<std::size_t>(processes));
  return train_in_processes(processes, run, [&](int process, Agreement& agreement, train::SessionOptions& options) {
    const FirstProcess first(&agreement);
    std::optional<train::ResumePoint>& point = points[static_cast<std::size_t>(process)];
    point = train::find_resume_point(options.run_dir, first);
    if (!point) fail_usage("there is no checkpoint");
    spec::Loaded loaded = loaded_of(set);
    const train::RunConfig config = train::read_run_config(options.run_dir, first);
    train::check_config_continues(config, loaded);
    run::RunState& state = point->checkpoint.state;
    train::apply_changes(config, changes, loaded, state);
    options.resume = &*point;
    options.folder.resume = true;
    options.folder.resumed = {state.step, run::best_folder(state), state.metrics_bytes};
    return setup::make_setup(std::move(loaded), train::schedule_origin(state));
  });
}

void check_same(const Ends& found, const Trained& expected) {
  for (const std::string& failure : found.failures) CHECK(failure == "");
  CHECK(found.trained.same_bits(expected));
  for (const run::Ended& ended : found.ended) {
    CHECK(ended.exit_status == expected.ended.exit_status);
    for (std::size_t m = 0; m < ended.members.size(); ++m) {
      const auto &found_one = ended.members[m].selected, &expected_one = expected.ended.members[m].selected;
      REQUIRE(found_one.has_value() == expected_one.has_value());
      if (found_one) CHECK(found_one->measures == expected_one->measures);
    }
  }
}

const std::vector<Texts> variations = {
    {},
    {"data.validation=0.25", "train.eval_every=1 step", "train.ema={decay: 0.5}",
     "train.checkpoint={every: 1 step, best: {metric: loss, mode: max}}"},
    {"mesh.axes=[{a: 2}, {b: 4}]", "ensemble={axis: a, vary: {seed: [0, 1]}}", "data.validation=0.25",
     "train.eval_every=1 step", "train.checkpoint={every: 1 step, best: {metric: loss, mode: max}}"},
};

Texts with(Texts set, const Texts& more) {
  set.insert(set.end(), more.begin(), more.end());
  return set;
}

}  // namespace

TEST_CASE("a run that only process 0 sees continues in several processes with the bits of one", "[train][placements]") {
  for (const Texts& variation : variations) {
    const Texts set = with({"mesh.blocks=4", "train.checkpoint.every=1 step"}, variation);
    INFO(set.back());
    const Trained expected = train_setup(setup_of_text(small_images, set));
    for (const int processes : {2, 4}) {
      INFO(processes << " processes");
      const TemporaryFolder root;
      train_setup_in(root / "run", setup_of_text(small_images, set), until(2));
      check_same(resume(processes, root / "run", set), expected);
    }
  }
}

TEST_CASE("processes continue from the checkpoint that process 0 finds whole, and with its changes",
          "[train][placements]") {
  const Texts set{"mesh.blocks=4", "train.checkpoint={every: 1 step, keep: 3}"}, changes{"optimizer.learning_rate=0.5"};
  const TemporaryFolder root;
  train_setup_in(root / "run", setup_of_text(small_images, set), until(3));
  test::write_text(root / "run/checkpoints/step-00000003/params.safetensors", "damaged");
  fs::copy(root / "run", root / "copy", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const Ends alone = resume(1, root / "copy", set, changes), both = resume(2, root / "run", set, changes);
  REQUIRE(alone.trained.ended.members.front().steps == 4);
  check_same(both, alone.trained);
  CHECK(read_text(root / "run/config.yaml") == read_text(root / "copy/config.yaml"));
}

TEST_CASE("a run that process 0 cannot continue ends all processes with its error", "[train][placements]") {
  const Texts set{"mesh.blocks=4"};
  const TemporaryFolder root;
  CHECK(resume(2, root / "none", set).failures == Texts{"there is no checkpoint", "there is no checkpoint"});
  train_setup_in(root / "run", setup_of_text(small_images, set), until(2));
  test::write_text(root / "run/checkpoints/step-00000002/params.safetensors", "damaged");
  const Texts failures = resume(3, root / "run", set).failures;
  CHECK(test::contains(failures[0], "no checkpoint of '" + (root / "run") + "' is whole: "));
  CHECK(failures[1] == "process 0 has failed");
  CHECK(failures[2] == "process 0 has failed");
}

TEST_CASE("processes begin with the initial parameters that process 0 alone sees", "[train][placements]") {
  for (const Texts& variation : variations) {
    INFO((variation.empty() ? "" : variation.front()));
    const TemporaryFolder root;
    train_setup_in(root / "before", setup_of_text(small_images, variation), until(3));
    const std::string params = root / "before/checkpoints/last/params.safetensors";
    Texts starts{root / "before", "{path: " + (root / "before") + ", checkpoint: 3, weights: raw}"};
    starts.push_back(params);  // a file, of which members are told by the shapes
    if (!variation.empty()) starts.push_back("{path: " + (root / "before") + ", checkpoint: best}");
    for (const std::string& from : starts) {
      INFO(from);
      const Texts set = with(variation, {"mesh.blocks=4", "model.init={from: " + from + "}"});
      const setup::Setup alone = setup_of_text(small_images, set);
      const Trained expected = train_setup(alone);
      Texts notes(3);
      const Ends found =
          train_in_processes(3, root / "run", [&](int process, Agreement& agreement, train::SessionOptions& options) {
            const FirstProcess first(&agreement);
            options.folder.overwrite = true;
            spec::Loaded loaded = loaded_of(set);
            if (process != 0) loaded.spec.model.initial_from->path = root / "gone";
            if (process != 0 && loaded.spec.ensemble) {
              for (spec::Spec& member : loaded.spec.ensemble->alone) member.model.initial_from->path = root / "gone";
            }
            auto opened = std::make_shared<setup::InitialFile>(setup::open_initial_file(loaded.spec.model, first));
            setup::Setup setup = setup::make_setup(std::move(loaded), std::nullopt, {}, std::move(opened));
            notes[static_cast<std::size_t>(process)] = setup.source.notes.back();
            return setup;
          });
      check_same(found, expected);
      for (const std::string& note : notes) CHECK(note == alone.source.notes.back());
      CHECK(test::contains(notes.front(), "model.init.from took 4 of the 4 parameters from "));
    }
  }
}

TEST_CASE("initial parameters that process 0 cannot open are its error at the key", "[train][placements]") {
  const TemporaryFolder root;
  std::vector<int> lines(2);
  const Ends found = train_in_processes(
      2, root / "run", [&](int process, Agreement& agreement, train::SessionOptions&) -> setup::Setup {
        const FirstProcess first(&agreement);
        const spec::Loaded loaded = loaded_of({"model.init={from: " + (root / "none.safetensors") + "}"});
        try {
          setup::open_initial_file(loaded.spec.model, first);
        } catch (const Error& error) {
          lines[static_cast<std::size_t>(process)] = error.diagnostics().front().place.line;
          throw;
        }
        throw std::logic_error("it was opened");
      });
  CHECK(found.failures ==
        Texts{"cannot open '" + (root / "none.safetensors") + "': No such file or directory", "process 0 has failed"});
  CHECK(lines == std::vector<int>{1, 0});
}

TEST_CASE("processes end with the last parameters if process 0 cannot read the best, or another not keep them",
          "[train][placements]") {
  const Texts set{"mesh.blocks=4", "data.validation=0.25", "train.eval_every=1 step",
                  "train.checkpoint={every: never, best: {metric: loss, mode: max}}"};
  const TemporaryFolder root;
  const auto lose = [&](const std::function<void()>& happens) {
    return train_in_processes(3, root / "run", [&](int process, Agreement&, train::SessionOptions& options) {
      options.folder.overwrite = true;
      options.between_steps = [&happens, process](Module&, std::int64_t step) {
        if (step == 4 && process == 0) happens();
      };
      return setup_of_text(small_images, set);
    });
  };
  const auto check_last = [](const Ends& ends, const std::string& why) {
    for (const std::string& failure : ends.failures) CHECK(failure == "");
    for (const run::Ended& ended : ends.ended) CHECK_FALSE(ended.members.front().selected);
    bool told = false;
    for (const run::Warned& warned : ends.trained.of<run::Warned>()) {
      told = told || warned.text.starts_with("the measures of the best checkpoint are not known: " + why);
    }
    CHECK(told);
  };
  const Ends best = lose([] {});
  for (const run::Ended& ended : best.ended) CHECK(ended.members.front().selected);
  check_last(lose([&] {
               while (!fs::is_symlink(root / "run/checkpoints/best")) std::this_thread::yield();
               const fs::path folder = root / "run/checkpoints" / fs::read_symlink(root / "run/checkpoints/best");
               test::write_text(folder / "params.safetensors", "damaged");
             }),
             "'" + (root / "run"));
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before != nullptr ? before : "/tmp";
  check_last(lose([&] { ::setenv("TMPDIR", (root / "none").c_str(), 1); }),
             "process 1: what process 0 has read cannot be written to '" + (root / "none") + "': ");
  ::setenv("TMPDIR", kept.c_str(), 1);
}

}  // namespace pmaptrain::testing::seen_by_first
