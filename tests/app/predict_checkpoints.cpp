// Which checkpoint and which weights predict and eval take.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/app/call.h"
#include "tests/app/predicting.h"
#include "tests/catch.h"

using namespace pmaptrain;
using namespace pmaptrain::tests;

namespace {

namespace fs = std::filesystem;

// A config and a table of two classes whose labels are all right from the first evaluation on, while the loss falls.
void write_separable(const TemporaryFolder& folder, const std::string& metric) {
  std::string table = "x,y\n";
  for (int i = 0; i < 16; ++i) table += i % 2 == 0 ? "-1,no\n" : "1,yes\n";
  folder.write("d.csv", table);
  folder.write("c.yaml",
               "data: {source: {csv: {train: d.csv, test: d.csv, target: y}}, batch_size: 16}\n"
               "model: {layers: [dense: 2], init: {values: {dense_0.kernel: [[-1, 1]]}}}\n"
               "loss: softmax_cross_entropy\nmetrics: [accuracy]\noptimizer: {sgd: {}, learning_rate: 0.1}\n"
               "train: {duration: 6 steps, eval_every: 1 steps, checkpoint: {best: {metric: " +
                   metric + "}}}\n");
}

}  // namespace

TEST_CASE("predict and eval take the best checkpoint where one is kept, say which, and take another one", "[app]") {
  TrainedRun run;
  run.folder.write("shop.csv", shop_table(48, true));
  run.folder.write("new.csv", shop_table(5, false));
  // The loss falls, so the largest one is that of the first evaluation.
  run.train("  source: {csv: {train: shop.csv, test: shop.csv, target: bought, categorical: [city]}}\n", "dense: 2", "",
            {"train.checkpoint.best={metric: loss, mode: max}", "train.ema.decay=0.9"});
  const auto predicted = [&](std::vector<std::string> options) {
    options.insert(options.end(), {"--overwrite", "--as", "probabilities"});
    const Finished done = run.predict("new.csv", "out.csv", options);
    REQUIRE(done.status == 0);
    return std::pair(test::read_text(run.folder / "out.csv"), done.out.substr(done.out.rfind('(')) + done.err);
  };
  const std::string note =
      "note: this is the best checkpoint, step-00000006; --checkpoint last takes the last one, step-00000060\n";
  const std::string of_run = " of " + run.dir + ")\n";
  const auto [best, told] = predicted({});
  CHECK(told == "(best checkpoint step-00000006" + of_run + note);
  CHECK(predicted({"--checkpoint", "best"}) == std::pair(best, "(best checkpoint step-00000006" + of_run));
  const auto [last, told_last] = predicted({"--checkpoint", "last"});
  CHECK(told_last == "(last checkpoint step-00000060" + of_run);
  CHECK(best != last);
  CHECK(predicted({"--checkpoint", "6"}) == std::pair(best, "(checkpoint step-00000006" + of_run));
  CHECK(predicted({"--weights", "ema"}).first == best);
  const std::string raw = predicted({"--weights", "raw"}).first;
  CHECK(raw != last);
  CHECK(raw != best);

  const Finished eval = call({"eval", run.dir});
  CHECK(eval.err == note);
  CHECK(test::contains(eval.out, ", best checkpoint step-00000006 of " + run.dir + ")\n"));
  CHECK(call({"eval", run.dir, "--json"}).err == note);
  const Finished eval_last = call({"eval", run.dir, "--checkpoint", "last"});
  CHECK(eval_last.err.empty());
  CHECK(test::contains(eval_last.out, ", last checkpoint step-00000060 of"));

  // A best one is configured, and not there: no evaluation, or a run folder that lost it.
  fs::remove(fs::path(run.dir) / "checkpoints/best");
  CHECK(predicted({}) == std::pair(last, "(last checkpoint step-00000060" + of_run));
}

TEST_CASE("without averaged weights, and with a best checkpoint that is the last, predict has nothing to tell",
          "[app]") {
  TrainedRun run;
  run.folder.write("shop.csv", shop_table(48, true));
  run.folder.write("new.csv", shop_table(5, false));
  run.train("  source: {csv: {train: shop.csv, test: shop.csv, target: bought, categorical: [city]}}\n", "dense: 2", "",
            {"train.checkpoint.best={metric: loss}", "train.duration=1 epoch"});
  const std::string last = run.csv("new.csv", {"--as", "logits"});
  CHECK(run.csv("new.csv", {"--as", "logits", "--weights", "raw"}) == last);
  CHECK(run.csv("new.csv", {"--as", "logits", "--checkpoint", "best"}) == last);
  CHECK(run.predict("new.csv", "other.csv").err.empty());
}

TEST_CASE("of evaluations with equal metrics that with the lowest loss is the best, also of a run that is resumed",
          "[app]") {
  const TemporaryFolder folder;
  // All labels are right from the first evaluation on, and the loss falls.
  write_separable(folder, "accuracy");
  const auto best = [&](const std::string& name, const std::vector<std::string>& options) {
    std::vector<std::string> arguments{"run", folder / "c.yaml", "--run-dir", folder / name, "-q"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    CHECK(call(arguments).status == 0);
    return nlohmann::json::parse(read_text(folder / (name + "/summary.json")))["best"];
  };
  const nlohmann::json whole = best("whole", {});
  CHECK(whole == nlohmann::json{{"step", 6}, {"metric", "accuracy"}, {"value", 1.0}});
  CHECK(best("parts", {"--max-steps", "3"})["step"] == 3);
  CHECK(best("parts", {"--resume"}) == whole);
}

TEST_CASE("a resumed run that selects by another metric keeps its best checkpoint until one is better", "[app]") {
  const TemporaryFolder folder;
  // All labels are right, and the loss falls: by loss the last evaluation is the best, by its opposite the first.
  write_separable(folder, "loss");
  const std::string run = folder / "run";
  const auto trained = [&](const std::vector<std::string>& options) {
    std::vector<std::string> arguments{"run", folder / "c.yaml", "--run-dir", run, "--progress", "none"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    CHECK(call(arguments).status == 0);
  };
  const auto best = [&] { return nlohmann::json::parse(read_text(folder / "run/summary.json")); };
  trained({"--max-steps", "3"});
  const double loss = best()["best"]["value"];
  trained({"--resume", "--max-steps", "4", "--set", "train.checkpoint.best={metric: loss, mode: max}"});
  const std::string told = read_text(folder / "run/log.txt");
  CHECK(contains(told,
                 "train.checkpoint.best selects by loss (max) now, and by loss (min) before: step 3, the best so "
                 "far, has loss "));
  CHECK(contains(told, ", and stays the best until an evaluation is better"));
  CHECK(best()["best"] == nlohmann::json{{"step", 3}, {"metric", "loss"}, {"value", loss}});
  CHECK(best()["selected"]["step"] == 3);
  CHECK(contains(call({"eval", run}).out, "best checkpoint step-00000003"));
  // All labels have been right at step 3 as well, where the loss was higher.
  trained({"--resume", "--set", "train.checkpoint.best={metric: accuracy}"});
  CHECK(best()["best"] == nlohmann::json{{"step", 6}, {"metric", "accuracy"}, {"value", 1.0}});
}
