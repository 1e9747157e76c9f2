// Layers that cannot fit the task of their run are told before it begins.
#include <algorithm>

#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

std::vector<std::string> warnings_of(const std::string& targets, const std::string& layers, const std::string& loss,
                                     std::vector<std::string> set = {}) {
  std::vector<std::string> found =
      setup_of_text("data: {source: {values: {inputs: [[0.5], [1], [-1], [0.25]], targets: " + targets +
                        "}}, batch_size: 2}\nmesh: {axes: {devices: 2}}\nmodel: {layers: " + layers + "}\nloss: " +
                        loss + "\noptimizer: {adam: {}, learning_rate: 0.1}\ntrain: {duration: 3 epochs}\n",
                    std::move(set))
          .warnings;
  return found;
}

}  // namespace

TEST_CASE("a last layer whose values some targets are not among is told, and one of which none is, refused",
          "[setup]") {
  const std::string some = "[[-1], [0.5], [2], [0.25]]";
  const auto found = warnings_of(some, "[dense: 1, relu]", "mean_squared_error");
  REQUIRE(found.size() == 1);
  CHECK(test::contains(found.front(),
                       ", is a relu and gives numbers of at least 0; 1 of 4 targets are not, which range "
                       "from -1.0000 to 2.0000: remove the layer"));
  CHECK(warnings_of(some, "[dense: 1, sigmoid]", "mean_squared_error").size() == 1);
  CHECK(warnings_of(some, "[dense: 1]", "mean_squared_error").empty());
  const std::string chances = "[[0], [0.5], [1], [0.25]]";
  CHECK(warnings_of(chances, "[dense: 1, sigmoid]", "mean_squared_error").empty());
  // In units of their deviation, half of them are below 0.
  CHECK(warnings_of(chances, "[dense: 1, relu]", "mean_squared_error", {"data.normalize_targets=auto"}).size() == 1);
  const auto of_logarithms = warnings_of("[[100], [200], [400], [800]]", "[dense: 1, tanh]", "mean_squared_error",
                                         {"data.normalize_targets=log"});
  REQUIRE(of_logarithms.size() == 1);
  CHECK(test::contains(of_logarithms.front(), "2 of 4 normalised targets are not, which range from -1.3"));
  CHECK(test::refusal([&] { warnings_of("[[5], [6], [7], [8]]", "[dense: 1, sigmoid]", "mean_squared_error"); },
                      ExitStatus::usage)
            .find("none of the 4 targets is among these, which range from 5.0000 to 8.0000 | remove the layer") !=
        std::string::npos);
}

TEST_CASE("outputs without a class, dense layers without an activation and dropout behind outputs are told",
          "[setup]") {
  const TemporaryFolder folder;
  folder.write("t.csv", "x,label\n0.5,0\n1,1\n-1,0\n0.25,1\n");
  const auto told = [&](const std::string& layers) {
    return setup_of_text("data: {source: {csv: {train: " + folder / "t.csv" +
                         ", target: label}}, batch_size: 2}\nmesh: {axes: {devices: 2}}\nmodel: {layers: " + layers +
                         "}\nloss: softmax_cross_entropy\noptimizer: {adam: {}, learning_rate: 0.1}\n"
                         "train: {duration: 3 epochs}\n")
        .warnings;
  };
  CHECK(told("[dense: 2]").empty());
  const auto ten = told("[dense: 10]");
  REQUIRE(ten.size() == 1);
  CHECK(test::contains(ten.front(), " are 10, and the training examples have 2 classes: end the layers with dense: 2"));
  const auto both = told("[dense: 4, dense: 2]");
  REQUIRE(both.size() == 1);
  CHECK(test::contains(both.front(), " is a dense layer directly behind dense_0: without an activation between them"));
  const auto dropout = told("[dense: 2, dropout: 0.5]");
  REQUIRE(dropout.size() == 1);
  CHECK(test::contains(dropout.front(), " is a dropout, which sets outputs of the model to 0 in training"));
}

TEST_CASE("targets far from 0 without normalize_targets are told for every loss of numbers", "[setup]") {
  const TemporaryFolder folder;
  std::string table = "x,y\n";
  for (int i = 0; i < 40; ++i) table += std::to_string(i % 7 - 3) + "," + std::to_string(1200 + i % 5 * 25) + "\n";
  folder.write("t.csv", table);
  const auto told = [&](const std::string& loss, const std::string& output, const std::string& optimizer,
                        const std::string& keys = "") {
    return setup_of_text("data: {source: {csv: {train: " + folder / "t.csv" + ", target: y}}, batch_size: 8" + keys +
                         "}\nmesh: {axes: {devices: 2}}\nmodel: {layers: [dense: 32, relu, dense: " + output +
                         "]}\nloss: " + loss + "\noptimizer: " + optimizer + "\ntrain: {duration: 1000 steps}\n")
        .warnings;
  };
  const std::string adam = "{adam: {}, learning_rate: 0.003}", sgd = "{sgd: {momentum: 0.5}, learning_rate: 0.003}";
  for (const std::string loss :
       {"mean_squared_error", "mean_absolute_error", "huber", "{huber: {delta: 2}}", "{quantile: {q: [0.5]}}"}) {
    INFO(loss);
    const auto warnings = told(loss, "1", adam);
    REQUIRE(warnings.size() == 1);
    CHECK(warnings.front() ==
          "targets are about 1250.0, and outputs begin near 0: at a learning rate of 0.003, 1,000 steps will hardly "
          "reach them; data.normalize_targets: auto trains in units of their standard deviation");
    // Gradients of squared errors grow with the distance.
    CHECK(told(loss, "1", sgd).size() == (loss == "mean_squared_error" ? 0U : 1U));
    CHECK(told(loss, "1", adam, ", normalize_targets: auto").empty());
    CHECK(told(loss, "1", "{adam: {}, learning_rate: 0.1}").empty());
    CHECK(told(loss, "{features: 1, bias_init: {constant: 1250}}", adam).empty());
  }
  const auto scheduled = told("huber", "1", "{adam: {}, learning_rate: {cosine_decay: {init_value: 0.002}}}");
  REQUIRE(scheduled.size() == 1);
  CHECK(test::contains(scheduled.front(), ": at a learning rate of at most 0.002, 1,000 steps will hardly"));
}

TEST_CASE("counts far above the rate with which outputs begin are told where to begin", "[setup]") {
  const TemporaryFolder folder;
  const auto told = [&](int mean, const std::string& output) {
    std::string table = "x,y\n";
    for (int i = 0; i < 40; ++i) table += std::to_string(i % 7 - 3) + "," + std::to_string(mean + i % 5 - 2) + "\n";
    folder.write("t.csv", table);
    return setup_of_text(
               "data: {source: {csv: {train: " + folder / "t.csv" +
               ", target: y}}, batch_size: 8}\nmesh: {axes: {devices: 2}}\nmodel: {layers: [dense: " + output +
               "]}\nloss: poisson\noptimizer: {adam: {}, learning_rate: 0.1}\ntrain: {duration: 9 steps}\n")
        .warnings;
  };
  const auto warnings = told(9000, "1");
  REQUIRE(warnings.size() == 1);
  CHECK(warnings.front() ==
        "counts are about 9000.0, and outputs, which are logarithms of rates, begin near 0 (0 is a rate of 1): this "
        "trains slowly, or not at all; let them begin at the logarithm of the mean: end the layers with dense: "
        "{features: 1, bias_init: {constant: 9.1050}}");
  CHECK(told(9000, "{features: 1, bias_init: {constant: 9.1050}}").empty());
  CHECK(told(50, "1").empty());
}
