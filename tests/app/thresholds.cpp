// Thresholds of two classes of which one is rare: chosen by eval, taken by predict.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/app/call.h"
#include "tests/catch.h"
#include "tests/data/files.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

using test::contains;
using tests::call;
using tests::Finished;

constexpr int rows = 600;

// About one in ten rows is "yes": the more likely, the larger `a`.
std::string table(std::vector<bool>& truth) {
  std::string text = "a,b,bought\n";
  std::uint32_t state = 1;
  const auto uniform = [&state] {
    state = state * 1664525U + 1013904223U;
    return static_cast<double>(state >> 8) / (1 << 24);
  };
  truth.clear();
  for (int i = 0; i < rows; ++i) {
    const double a = uniform(), b = uniform(), noise = uniform();
    truth.push_back(a + 0.1 * noise > 0.95);
    text += std::to_string(a) + "," + std::to_string(b) + (truth.back() ? ",yes\n" : ",no\n");
  }
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string output_of(const std::vector<std::string>& arguments) {
  const Finished done = call(arguments);
  INFO(done.err);
  REQUIRE(done.status == 0);
  return done.out;
}

}  // namespace

TEST_CASE("a rare class gets a threshold by eval, of one logit and of two, which predict takes", "[app]") {
  const TemporaryFolder folder;
  std::vector<bool> truth;
  const std::string data = folder.write("shop.csv", table(truth)), config = folder / "shop.yaml";
  output_of({"init", "csv", data, config});
  CHECK(contains(test::read_text(config), "loss: sigmoid_cross_entropy "));
  for (const bool two : {false, true}) {
    INFO(two);
    const std::string run = folder / (two ? "two" : "one");
    std::vector<std::string> train = {"run",
                                      config,
                                      "--run-dir",
                                      run,
                                      "-q",
                                      "--progress",
                                      "none",
                                      "--set",
                                      "train.duration=12 epochs",
                                      "--set",
                                      "optimizer.learning_rate=0.01"};
    if (two) train.insert(train.end(), {"--set", "model.layers.4.dense=2", "--set", "loss=softmax_cross_entropy"});
    output_of(train);
    const auto predict = [&](std::vector<std::string> options) {
      options.insert(options.begin(), {"predict", run, "--input", data, "--output", "-", "-q"});
      return lines_of(output_of(options));
    };
    const Finished none = call({"predict", run, "--input", data, "--output", "-", "--threshold", "run"});
    CHECK(none.status == 2);
    CHECK(contains(none.err, "help: pmaptrain eval " + run + " --tune-threshold f1 chooses one on validation"));
    const Finished tuned = call({"eval", run, "--tune-threshold", "f1", "--checkpoint", "last"});
    CHECK(tuned.status == 0);
    CHECK(contains(tuned.out, "has the best f1 of class yes on validation, "));
    CHECK(contains(tuned.err, "note: the threshold is chosen with "));
    CHECK(contains(tuned.err, " examples of class 'yes', fewer than 30: another split may have another\n"));
    CHECK_FALSE(contains(tuned.out, "it replaces"));
    CHECK(contains(output_of({"eval", run, "--tune-threshold", "f1"}), "\nit replaces 0."));
    // What eval counts at a threshold is what predict says at it.
    const std::string counts = output_of({"eval", run, "--split", "train", "--threshold", "run", "--set",
                                          "metrics=[roc_auc, recall, confusion_matrix]", "--json", "-q"});
    const auto at_run = nlohmann::json::parse(counts);
    const auto matrix = at_run["confusion_matrix"];
    const double said = matrix[1][1].get<double>(), missed = matrix[1][0].get<double>();
    CHECK(at_run["recall"].get<double>() * (two ? 2 : 1) ==
          Approx(said / (said + missed) +
                 (two ? matrix[0][0].get<double>() / (matrix[0][0].get<double>() + matrix[0][1].get<double>()) : 0)));
    CHECK(contains(output_of({"eval", run, "--threshold", "0.3"}), ", threshold 0.3)\n"));
    const Finished without = call({"eval", run, "--threshold", "0.3", "--set", "metrics=[roc_auc]"});
    CHECK(without.status == 2);
    CHECK(contains(without.err, "error: --threshold: the run has no metric with a threshold\n"));
    const Finished recall = call({"eval", run, "--tune-threshold", "recall"});
    CHECK(recall.status == 2);
    CHECK(contains(recall.err,
                   "a threshold is chosen by f1: recall alone is 1 where every example is predicted, at a threshold "
                   "near 0\n"));
    const double threshold = nlohmann::json::parse(test::read_text(run + "/threshold.json"))["threshold"].get<double>();
    const auto classes = predict({"--threshold", "run"}), chances = predict({"--as", "probabilities"});
    REQUIRE(classes.size() == rows + 1);
    REQUIRE(chances.size() == rows + 1);
    CHECK(chances[0] == (two ? "probability_no,probability_yes" : "probability_yes"));
    int hits = 0, predicted = 0, actual = 0, same = 0;
    for (std::size_t i = 0; i < rows; ++i) {
      const std::string& row = chances[i + 1];
      const double chance = std::stod(row.substr(row.find(',') + 1));  // the whole row without a comma
      const bool is_yes = classes[i + 1] == "yes";
      same += is_yes == (chance > threshold) ? 1 : 0;
      predicted += is_yes ? 1 : 0;
      actual += truth[i] ? 1 : 0;
      hits += is_yes && truth[i] ? 1 : 0;
    }
    CHECK(same == rows);
    CHECK(2.0 * hits / (predicted + actual) > 0.5);  // f1
    std::vector<std::string> never(rows + 1, "no");
    never[0] = "prediction";
    CHECK(predict({"--threshold", "0.999999999"}) == never);
  }
}

TEST_CASE("a model without a probability to compare says what takes a threshold", "[app]") {
  const TemporaryFolder folder;
  std::string numbers = "x,y\n", classes = "x,y\n";
  for (int i = 0; i < 32; ++i) {
    numbers += std::to_string(i) + "," + std::to_string(i) + ".5\n";
    classes += std::to_string(i) + ",c" + std::to_string(i % 3) + "\n";
  }
  folder.write("numbers.csv", numbers);
  folder.write("classes.csv", classes);
  const auto train = [&](const std::string& name, const std::string& model) {
    folder.write(name + ".yaml",
                 "mesh: {axes: {devices: 2}}\ndata: {batch_size: 8, validation: 0.25, source: {csv: "
                 "{train: " +
                     name + ".csv, target: y}}}\n" + model +
                     "\noptimizer: {adam: {}, learning_rate: 0.05}\ntrain: {duration: 1 epoch}\n");
    output_of({"run", folder / (name + ".yaml"), "--run-dir", folder / name, "-q", "--progress", "none"});
  };
  train("numbers", "model: {layers: [dense: 1]}\nloss: mean_squared_error");
  train("classes", "model: {layers: [dense: 3]}\nloss: softmax_cross_entropy");
  const auto told = [&](const std::string& name, const std::string& option) {
    const std::string run = folder / name;
    const Finished refused =
        option == "--tune-threshold"
            ? call({"eval", run, "--tune-threshold", "f1"})
            : call({"predict", run, "--input", folder / (name + ".csv"), "--output", "-", option, "run"});
    CHECK(refused.status == 2);
    CHECK(refused.out.empty());
    return refused.err.substr(refused.err.find("error: "));
  };
  for (const std::string option : {"--tune-threshold", "--threshold"}) {
    INFO(option);
    CHECK(told("numbers", option) ==
          "error: " + option + " is for probabilities; the loss of the run, mean_squared_error, is one of numbers\n" +
              "  help: it goes with sigmoid_cross_entropy, or softmax_cross_entropy of two classes\n");
    CHECK(
        told("classes", option) ==
        "error: " + option + " is for two classes, or several labels at once; the loss of the run, " +
            "softmax_cross_entropy, has 3 classes, and the most likely is predicted\n" +
            "  help: to tell one class from all others, train on a target of 0 and 1 with dense: 1 as the last layer " +
            "and loss: sigmoid_cross_entropy\n");
  }
  const Finished as = call({"predict", folder / "classes", "--input", folder / "classes.csv", "--output", "-",
                            "--threshold", "0.3", "--as", "logits"});
  CHECK(as.status == 2);
}
