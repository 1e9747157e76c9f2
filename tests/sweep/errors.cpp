#include <filesystem>

#include "core/base/error.h"
#include "core/sweep/plan.h"
#include "core/sweep/store.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/refused.h"
#include "tests/sweep/trials.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// Without the folder's path, which differs from time to time.
std::string without(std::string text, const std::string& folder) {
  for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder))
    text.erase(at, folder.size());
  return text;
}

}  // namespace

TEST_CASE("the sweep files in tests/sweep/errors are refused as the texts beside them say", "[sweep]") {
  const SweepFolder folder;
  const std::string base = test::read_text(folder.path("base.yaml"));
  const auto extend = [&](const std::string& name, const std::string& train) {
    std::string text = base;
    text.insert(text.find("duration: 4 epochs"), train + ", ");
    test::write_text(folder.path(name), text);
  };
  extend("timed.yaml", "max_time: 1 hour");
  extend("best.yaml", "checkpoint: {best: {metric: mean_absolute_error}}");
  test::check_refused("tests/sweep/errors", [&](const std::string& config, const spec::Overrides& overrides) {
    const std::string file = folder.path("sweep.yaml");
    test::write_text(file, config);
    try {
      sweep::plan_sweep(spec::Sweep::load(file, overrides.set), 1);
    } catch (const Error& error) {
      std::vector<Diagnostic> diagnostics = error.diagnostics();
      for (Diagnostic& one : diagnostics) {
        one.place.file = without(one.place.file, folder.path(""));
        one.message = without(one.message, folder.path(""));
        for (std::string& note : one.notes) note = without(note, folder.path(""));
      }
      throw Error(error.status(), std::move(diagnostics));
    }
  });
}

TEST_CASE("a base whose path cannot be written into YAML is refused", "[sweep]") {
  const test::TemporaryFolder folder;
  const std::filesystem::path below = folder.path() / "na\xffme";
  std::filesystem::create_directory(below);
  test::write_text(below / "sweep.yaml", "base: base.yaml\nparameters: {seed: {choice: [0, 1]}}\n");
  CHECK(error_of([&] { spec::Sweep::load((below / "sweep.yaml").string(), {}); }) ==
        (below / "sweep.yaml").string() + ":1:7: error: the path of the base, '" + (below / "base.yaml").string() +
            "', is not UTF-8\n    1 | base: base.yaml\n      |       ^~~~~~~~~\n"
            "  help: rename its folder: the sweep writes the whole path into a YAML file\n");
}

TEST_CASE("each edit of a sweep file that a resumed sweep refuses is told once, at its place", "[sweep]") {
  const SweepFolder folder;
  const std::string rate = "parameters: {optimizer.learning_rate: {uniform: [0.01, 0.2]}";
  CalledTrials trials;
  const auto first = folder.run(folder.sweep(rate + "}\nsearch: random\ntrials: 5\n"), "random", trials);
  const auto refusal = [&](const std::string& keys) {
    const std::string said = error_of([&] { folder.run(folder.sweep(keys), "random", trials, true); });
    std::string messages;
    for (const std::string& line : test::lines_of(said)) {
      const std::string begin = folder.path("sweep.yaml") + ":";
      if (line.starts_with(begin)) messages += line.substr(begin.size()) + "\n";
      CHECK_FALSE(line.starts_with("error: "));
    }
    return messages;
  };
  CHECK(refusal("parameters: {optimizer.learning_rate: {uniform: [0.01, 0.3]}}\nsearch: random\ntrials: 5\n") ==
        "3:39: error: optimizer.learning_rate is {uniform: [0.01, 0.3]}, and was {uniform: [0.01, 0.2]}\n");
  CHECK(refusal(rate + "}\nsearch: random\ntrials: 3\nseed: 1\n") ==
        "6:7: error: seed is 1, and was 0\n5:9: error: trials is 3, and was 5\n");
  CHECK(refusal(rate + ", optimizer.sgd.momentum: {uniform: [0, 0.5]}}\nsearch: random\ntrials: 5\n") ==
        "3:87: error: optimizer.sgd.momentum is {uniform: [0, 0.5]}, and was no parameter\n");
  CHECK(refusal("parameters: {optimizer.sgd.momentum: {uniform: [0, 0.5]}}\nsearch: random\ntrials: 5\n") ==
        "3:38: error: optimizer.sgd.momentum is {uniform: [0, 0.5]}, and was no parameter\n"
        "3:13: error: optimizer.learning_rate is no parameter, and was {uniform: [0.01, 0.2]}\n");
  CHECK(refusal("parameters: {optimizer.learning_rate: {choice: [0.01, 0.2]}}\nsearch: grid\n") ==
        "4:9: error: the sweep's search is grid, and was random\n"
        "3:39: error: optimizer.learning_rate is {choice: [0.01, 0.2]}, and was {uniform: [0.01, 0.2]}\n");
  CHECK(trials.calls == 5);
  // A store that does not say what its trials were made of: they are told in one error.
  sweep::Store(folder.path("random"), sweep::Store::Access::write).set_text("parameters", "");
  CHECK(refusal("parameters: {optimizer.learning_rate: {uniform: [0.01, 0.3]}}\nsearch: random\ntrials: 5\n") ==
        "3:13: error: trial 0 " + first[0].parameters +
            " and 4 more are in the sweep's folder, and not in this file\n");
}

TEST_CASE("what the values of a sweep replace in its base, or leave as it is there, is said once", "[sweep]") {
  const SweepFolder folder;
  std::string base = test::read_text(folder.path("base.yaml"));
  base.replace(base.find("learning_rate: 0.1"), 18, "learning_rate: {cosine_decay: {init_value: 0.1}}");
  test::write_text(folder.path("base.yaml"), base);
  using Notes = std::vector<std::string>;
  const spec::Sweep rates = folder.sweep("parameters: {optimizer.learning_rate: {choice: [0.01, 0.02, 0.04]}}\n");
  CHECK(sweep::plan_sweep(rates, 1).notes ==
        Notes{"optimizer.learning_rate: a number replaces the schedule cosine_decay; "
              "optimizer.learning_rate.cosine_decay.init_value keeps the schedule"});
  const spec::Sweep kinds =
      folder.sweep("parameters: {opt: {choice: [{optimizer.adam: {}}, {optimizer.sgd: {momentum: 0.9}}]}}\n");
  CHECK(kinds.spec().notes.empty());
  CHECK(sweep::plan_sweep(kinds, 1).notes.empty());
  const spec::Sweep sizes = folder.sweep(
      "parameters: {size: {choice: [{data.batch_size: 8, optimizer.sgd.momentum: 0.9}, {data.batch_size: 4}]}}\n");
  CHECK(sizes.spec().notes == Notes{"size: {data.batch_size: 4} does not set optimizer.sgd.momentum, which keeps the "
                                    "base's value, 0.5"});
}
