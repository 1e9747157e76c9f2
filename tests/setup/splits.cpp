// Evaluation splits of a whole run: what is evaluated when, and on what a run selects.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/setup/plan.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

std::string selection_error(const setup::Setup& setup) {
  return test::refusal([&] { setup::selection_split_of(setup, "train.checkpoint.best", {}); }, ExitStatus::usage);
}

std::vector<std::string> entries_of(const setup::Setup& setup) {
  std::vector<std::string> names;
  for (const Entry& entry : setup::run_source(setup).entries) names.push_back(entry.name);
  return names;
}

}  // namespace

TEST_CASE("intervals evaluate validation where there is one, else test", "[setup]") {
  const setup::Setup both = setup_of_text(small_images, {"data.validation=0.25"});
  REQUIRE(both.evaluations.size() == 2);
  CHECK(both.evaluations[0].split == "validation");
  CHECK(both.evaluations[0].dataset->size() == 12);
  CHECK(both.evaluations[1].split == "test");
  CHECK(both.evaluations[1].dataset->size() == 21);
  CHECK(both.batch.dataset == 36);
  CHECK(both.batch.steps_per_epoch == 2);
  CHECK(entries_of(both) == std::vector<std::string>{"train", "evaluate", "evaluate_test"});

  const setup::Setup test_only = setup_of_text(small_images);
  REQUIRE(test_only.evaluations.size() == 1);
  CHECK(test_only.evaluations[0].split == "test");
  CHECK(entries_of(test_only) == std::vector<std::string>{"train", "evaluate"});

  const setup::Setup validation_only =
      setup_of_text(small_images, {"data.validation=0.25", "data.source.synthetic_images.test=0"});
  REQUIRE(validation_only.evaluations.size() == 1);
  CHECK(validation_only.evaluations[0].split == "validation");
  CHECK(validation_only.timetable.eval_every == 2);

  CHECK(entries_of(setup_of_text(small_images, {"data.validation=0.25", "train.eval_every=never"})) ==
        std::vector<std::string>{"train"});
}

TEST_CASE("a batch of the whole split is what validation leaves", "[setup]") {
  const setup::Setup setup = setup_of_text(small_images, {"data.validation=0.25", "data.batch_size=all"});
  CHECK(setup.batch.global == 36);
  const setup::Setup limited =
      setup_of_text(small_images, {"data.validation=0.25", "data.batch_size=all", "data.limit.train=8 examples"});
  CHECK(limited.batch.global == 8);
  CHECK(limited.evaluations[0].dataset->size() == 12);
}

TEST_CASE("the seed of the run does not change the validation split", "[setup]") {
  const auto measured = [](const std::string& seed) {
    const setup::Setup setup = setup_of_text(small_images, {"data.validation=0.25", seed, "data.seed=5"});
    const data::Dataset& dataset = *setup.evaluations.front().dataset;
    std::vector<std::byte> bytes(dataset.input().bytes() * static_cast<std::size_t>(dataset.size()));
    std::int32_t target = 0;
    for (std::int64_t i = 0; i < dataset.size(); ++i) {
      dataset.read(i, bytes.data() + static_cast<std::size_t>(i) * dataset.input().bytes(),
                   reinterpret_cast<std::byte*>(&target));
    }
    return bytes;
  };
  CHECK(measured("seed=0") == measured("seed=9"));
}

TEST_CASE("a run selects on validation, else on test with a warning, else not at all", "[setup]") {
  const setup::SelectionSplit validation =
      setup::selection_split_of(setup_of_text(small_images, {"data.validation=0.25"}), "train.checkpoint.best", {});
  CHECK(validation.split == "validation");
  CHECK(validation.warning.empty());
  const setup::SelectionSplit test =
      setup::selection_split_of(setup_of_text(small_images), "train.checkpoint.best", {});
  CHECK(test.split == "test");
  CHECK(test.warning ==
        "train.checkpoint.best selects on the test split, so the test measures of the run are no longer an unbiased "
        "estimate; data.validation: 0.1 would keep a tenth of the training examples aside to select on");
  CHECK(selection_error(setup_of_text(small_images, {"data.source.synthetic_images.test=0"})) ==
        "train.checkpoint.best has nothing to select on: the data has neither a validation nor a test split | "
        "data.validation: 0.1 would keep a tenth of the training examples aside");
  CHECK(selection_error(setup_of_text(small_images, {"data.validation=0.25", "train.eval_every=never"})) ==
        "train.checkpoint.best has nothing to select on: train.eval_every is never | evaluate, for example every "
        "epoch");
}

TEST_CASE("eval takes test, then validation, and any split by its name", "[setup]") {
  const TemporaryFolder root;
  const setup::Setup setup = setup_of_text(small_images, {"data.validation=0.25"});
  const Trained trained = train_setup_in(root / "run", setup);
  const std::string run = root / "run";
  CHECK(trained.of<run::Evaluated>().front().split == "validation");
  CHECK(trained.of<run::Evaluated>().front().examples == 12);
  const evaluate::Evaluation by_default = evaluate::evaluate_checkpoint(setup.loaded, run, "last").front();
  CHECK(by_default.split == "test");
  CHECK(by_default.examples == 21);
  CHECK(evaluate::evaluate_checkpoint(setup.loaded, run, "last", "validation").front().measures ==
        trained.of<run::Evaluated>().end()[-2].measures);
  CHECK(by_default.measures == trained.of<run::Evaluated>().back().measures);
  CHECK(evaluate::evaluate_checkpoint(setup.loaded, run, "last", "train").front().examples == 36);
  const spec::Loaded without_test =
      setup_of_text(small_images, {"data.validation=0.25", "data.source.synthetic_images.test=0"}).loaded;
  CHECK(evaluate::evaluate_checkpoint(without_test, run, "last").front().split == "validation");
}

TEST_CASE("eval takes the batches of the run, and so its sums, where the batch is the whole training split",
          "[setup]") {
  for (const std::vector<std::string>& set : std::vector<std::vector<std::string>>{
           {"data.microbatches=3", "data.remainder=mask"},
           {"data.microbatches=2", "data.remainder=mask", "data.validation=0.3"},
           {"data.source.synthetic_images.test=100"},
       }) {
    INFO(set.front());
    const TemporaryFolder root;
    std::vector<std::string> all = set;
    all.emplace_back("data.batch_size=all");
    const setup::Setup setup = setup_of_text(small_images, all);
    const Trained trained = train_setup_in(root / "run", setup);
    const auto found = evaluate::evaluate_checkpoint(setup.loaded, root / "run", "last", "test");
    CHECK(found.front().measures == trained.of<run::Evaluated>().back().measures);
  }
}

TEST_CASE("eval on test needs no training data", "[setup]") {
  const TemporaryFolder root;
  const auto write = [&](const char* name, std::vector<unsigned char> header, const std::string& content) {
    return root.write(name, std::string(header.begin(), header.end()) + content);
  };
  const std::string images = write("images", {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2}, "abcd");
  const std::string labels = write("labels", {0, 0, 8, 1, 0, 0, 0, 2}, std::string("\0\2", 2));
  const std::string test_images = write("test_images", {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2}, "ef");
  const std::string test_labels = write("test_labels", {0, 0, 8, 1, 0, 0, 0, 1}, std::string("\1", 1));
  for (const char* size : {"2", "all"}) {
    INFO(size);
    const std::string text = "mesh: {axes: {a: 1}}\ndata: {source: {idx: {train: [" + images + ", " + labels +
                             "], test: [" + test_images + ", " + test_labels + "]}}, batch_size: " + size +
                             "}\nmodel: {layers: [flatten, {dense: 3}]}\nloss: softmax_cross_entropy\n"
                             "optimizer: {sgd: {}, learning_rate: 0.1}\ntrain: {duration: 1 step}\n";
    const setup::Setup setup = setup_of_text(text);
    const std::string run = root / (std::string("run_") + size);
    const Trained trained = train_setup_in(run, setup);
    std::filesystem::rename(images, images + "_moved");
    CHECK(evaluate::evaluate_checkpoint(setup.loaded, run, "last").front().measures ==
          trained.of<run::Evaluated>().back().measures);
    CHECK(test::refusal([&] { evaluate::evaluate_checkpoint(setup.loaded, run, "last", "train"); }, ExitStatus::data)
              .find("cannot open '" + images + "'") != std::string::npos);
    std::filesystem::rename(images + "_moved", images);
  }
}
