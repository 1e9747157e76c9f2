// init for tables whose target is one of two classes, however they are written and however rare one is.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/app/call.h"
#include "tests/app/init.h"
#include "tests/catch.h"
#include "tests/data/files.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using namespace pmaptrain::tests;

namespace {

// A row of `second` where `is_second`, whose inputs tell it from `first`.
std::string row_of(bool is_second, int number, const std::string& first, const std::string& second) {
  const int noise = number * 37 % 20;
  return std::to_string((is_second ? 200 : 0) + noise) + ".5," + std::to_string(number * 53 % 7) + ".25," +
         (is_second ? second : first);
}

struct Coding {
  const char *first, *second;  // sorted
  const char* names[2];        // that are predicted
};
const Coding codings[] = {{"0", "1", {"0", "1"}},          {"0.0", "1.0", {"0", "1"}},
                          {"-1", "1", {"-1", "1"}},        {"-1.0", "1.0", {"-1", "1"}},
                          {"1", "2", {"1", "2"}},          {"2", "4", {"2", "4"}},
                          {"2.0", "4.0", {"2", "4"}},      {"0", "100", {"0", "100"}},
                          {"no", "yes", {"no", "yes"}},    {"False", "True", {"False", "True"}},
                          {"fraud", "ok", {"fraud", "ok"}}};

enum class Rare { none, first, second };

}  // namespace

TEST_CASE("init csv takes any two values as classes: what it writes trains, tunes a threshold and predicts them",
          "[app]") {
  const TemporaryFolder folder;
  constexpr int rows = 240;
  const std::string file = folder / "own.yaml", run = folder / "run";
  for (const Coding& coding : codings) {
    for (const Rare rare : {Rare::none, Rare::first, Rare::second}) {
      INFO(coding.first << " and " << coding.second << ", rare: " << static_cast<int>(rare));
      const auto is_second = [&](int i) {
        return rare == Rare::none ? i % 2 == 1 : (i % 12 == 5) == (rare == Rare::second);
      };
      const std::string data = folder.write("own.csv", "a,b,label\n" + rows_of(rows, [&](int i) {
                                                         return row_of(is_second(i), i, coding.first, coding.second);
                                                       }));
      const std::string config = written(folder, "csv", data);
      CHECK(contains(config, rare == Rare::none ? "loss: softmax_cross_entropy\n" : "loss: sigmoid_cross_entropy "));
      const auto done = [&](const std::vector<std::string>& command) {
        const Finished finished = call(command);
        INFO(finished.err);
        REQUIRE(finished.status == 0);
        return finished.out;
      };
      done({"run", file, "-q", "--run-dir", run, "--overwrite", "--set", "train.duration=8 epochs", "--set",
            "optimizer.learning_rate=0.05"});
      // The rare class is the one that a threshold is of.
      const std::string of = coding.names[rare == Rare::first ? 0 : 1];
      CHECK(contains(done({"eval", run, "--tune-threshold", "f1"}), " has the best f1 of class " + of + " on "));
      for (const std::string threshold : {"run", "0.5"}) {
        std::string expected = "prediction\n";
        for (int i = 0; i < rows; ++i) expected += std::string(coding.names[is_second(i) ? 1 : 0]) + "\n";
        CHECK(done({"predict", run, "--input", data, "--output", "-", "-q", "--threshold", threshold}) == expected);
      }
    }
  }
}

TEST_CASE("init csv lists the rare class of two last, and labels that are not 0, 1, 2, ... as names", "[app]") {
  const TemporaryFolder folder;
  const auto config = [&](int every, const std::string& rare, const std::string& other) {
    return written(folder, "csv", folder.write("own.csv", "a,b,label\n" + rows_of(240, [&](int i) {
                                                            return row_of(i % every == 0, i, other, rare);
                                                          })));
  };
  const std::string fraud = config(12, "fraud", "ok");
  CHECK(contains(fraud, "classes: [ok, fraud] "));
  CHECK(contains(fraud, "one logit, of class 'fraud'"));
  CHECK_FALSE(contains(config(12, "yes", "no"), "classes: ["));
  CHECK_FALSE(contains(config(12, "1", "0"), "classes: ["));
  CHECK_FALSE(contains(config(2, "ok", "fraud"), "classes: ["));
  CHECK(contains(config(12, "0.0", "1.0"), "classes: [\"1\", \"0\"] "));
  const std::string grades =
      written(folder, "csv", folder.write("grades.csv", "a,b,grade\n" + rows_of(240, [](int i) {
                                                          return row_of(false, i, std::to_string(3 + i % 4), "");
                                                        })));
  CHECK(contains(grades, "classes: [\"3\", \"4\", \"5\", \"6\"] "));
  CHECK(contains(grades, "- dense: 4 "));
}

TEST_CASE("init csv keeps more examples aside where few are of a rare class, and selects by the loss", "[app]") {
  const TemporaryFolder folder;
  const auto config = [&](int rows) {
    return written(folder, "csv", folder.write("own.csv", "a,b,label\n" + rows_of(rows, [](int i) {
                                                            return row_of(i % 10 == 0, i, "no", "yes");
                                                          })));
  };
  const std::string few = config(1200);
  CHECK(contains(few, "validation: {share: 0.2, stratify: true} "));
  CHECK(contains(few, "# of the training examples of each class; it has 24 of class 'yes'\n"));
  CHECK(contains(few, "checkpoint: {best: {metric: loss}} "));
  CHECK(contains(few, "early_stopping: {metric: loss, patience: 10} "));
  const std::string enough = config(5000);
  CHECK(contains(enough, "validation: {share: 0.1, stratify: true} "));
  CHECK(contains(enough, "; it has 50 of class 'yes'\n"));
  CHECK(contains(enough, "checkpoint: {best: {metric: roc_auc}} "));
}
