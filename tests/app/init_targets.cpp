// init for tables whose targets are several labels, several numbers, or numbers with a long tail.
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/app/call.h"
#include "tests/catch.h"
#include "tests/data/files.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using namespace pmaptrain::tests;

namespace {

// The config that init writes, which runs as it is.
std::string trained(const TemporaryFolder& folder, const std::string& table,
                    const std::vector<std::string>& options = {}) {
  const std::string file = folder / "own.yaml";
  std::filesystem::remove(file);
  std::vector<std::string> command{"init", "csv", folder.write("own.csv", table), file};
  command.insert(command.end(), options.begin(), options.end());
  const Finished init = call(command);
  INFO(init.err);
  REQUIRE(init.status == 0);
  const Finished run = call({"run", file, "-q", "--run-dir", folder / "run", "--overwrite", "--max-steps", "2"});
  INFO(run.err);
  CHECK(run.status == 0);
  return test::read_text(file) + init.out;
}

}  // namespace

TEST_CASE("init csv finds cells with several labels and trains a logit for each", "[app]") {
  const TemporaryFolder folder;
  const char* const cells[] = {"red;round", "red", "round", "", "red; soft"};
  std::string table = "x,tags\n", places = "x,place\n";
  for (int i = 0; i < 60; ++i) {
    table += std::to_string(i % 7) + ".5," + cells[i % 5] + "\n";
    places += std::to_string(i % 7) + (i % 2 == 0 ? ".5,Oslo; Norway\n" : ".5,Rome; Italy\n");
  }
  const std::string config = trained(folder, table);
  CHECK(contains(config, "label_separator: \";\" "));
  CHECK(contains(config, "- dense: 3 "));
  CHECK(contains(config, "loss: sigmoid_cross_entropy\n"));
  CHECK(contains(config, "metrics: [f1]\n"));
  CHECK(contains(config, "target: 'tags', the last column: several labels at once, 3 labels (red, round, soft)"));
  CHECK(contains(trained(folder, places), "loss: softmax_cross_entropy\n"));
}

TEST_CASE("init csv takes several columns of 0 and 1 as labels, and others as numbers", "[app]") {
  const TemporaryFolder folder;
  std::string table = "x,red,round,size\n";
  for (int i = 0; i < 60; ++i) {
    table += std::to_string(i % 7) + ".5," + std::to_string(i % 2) + "," + std::to_string(i % 3 == 0) + "," +
             std::to_string(i % 9) + ".25\n";
  }
  const std::string labels = trained(folder, table, {"--target", "red", "--target", "round"});
  CHECK(contains(labels, "target: [red, round] "));
  CHECK(contains(labels, "loss: sigmoid_cross_entropy\n"));
  CHECK(contains(labels, "- dense: 2 "));
  const std::string numbers = trained(folder, table, {"--target", "red", "--target", "size"});
  CHECK(contains(numbers, "loss: mean_squared_error\n"));
  CHECK(contains(numbers, "normalize_targets: auto "));
}

TEST_CASE("init csv trains on logarithms of targets with a long tail", "[app]") {
  const TemporaryFolder folder;
  const auto table = [](int step) {
    std::string text = "x,price\n";
    double price = 10;
    for (int i = 0; i < 90; ++i, price = step == 0 ? price * 1.1 : price + step) {
      text += std::to_string(i * 37 % 90) + ".5," + std::to_string(price) + "\n";
    }
    return text;
  };
  const std::string tail = trained(folder, table(0));
  CHECK(contains(tail, "normalize_targets: log "));
  CHECK(contains(tail, "predictions are nearer a median than a mean"));
  CHECK(contains(trained(folder, table(3)), "normalize_targets: auto "));
}

TEST_CASE("init csv says how whole numbers of at least 0 are trained as counts", "[app]") {
  const TemporaryFolder folder;
  const auto told = [&](int offset, int step) {
    std::string table = "x,sold\n";
    for (int i = 0; i < 90; ++i)
      table += std::to_string(i * 37 % 90) + ".5," + std::to_string(offset + i * step) + "\n";
    return trained(folder, table);
  };
  const std::string counts = told(0, 3);
  CHECK(
      contains(counts,
               ": regression, its numbers; as counts: loss: poisson without normalize_targets, and outputs that begin "
               "at the logarithm of the mean: dense: {features: 1, bias_init: {constant: 4.9017}}; another column"));
  // What the line says is a config that runs.
  const Finished run = call({"run", folder / "own.yaml", "-q", "--run-dir", folder / "run", "--overwrite",
                             "--max-steps", "2", "--set", "loss=poisson", "--set", "data.normalize_targets=null"});
  INFO(run.err);
  CHECK(run.status == 0);
  CHECK_FALSE(contains(told(1900, 1), "as counts"));  // years
  CHECK_FALSE(contains(told(-5, 3), "as counts"));
}

TEST_CASE("counts in the thousands are learnt by what init csv says of counts", "[app]") {
  const TemporaryFolder folder;
  std::string table = "x,z,sold\n";
  for (int i = 0; i < 1500; ++i) {
    const double x = i * 37 % 100 / 10.0, z = i * 53 % 41 / 20.0 - 1;
    const double rate = 9000 * std::exp(0.08 * (x - 5) + 0.1 * z);
    table += std::to_string(x) + "," + std::to_string(z) + "," +
             std::to_string(std::lround(rate + std::sqrt(rate) * (i * 7919 % 31 - 15) / 10)) + "\n";
  }
  const std::string told = trained(folder, table);
  const std::string before = "the logarithm of the mean: ";
  const std::size_t begin = told.find(before) + before.size();
  const std::string layer = told.substr(begin, told.find("; another column") - begin);
  CHECK(contains(layer, "bias_init: {constant: 9.1"));
  const std::vector<std::string> counts{"--set", "loss=poisson", "--set", "data.normalize_targets=null"};
  const auto called = [&](std::vector<std::string> command, std::vector<std::string> options) {
    command.insert(command.end(), counts.begin(), counts.end());
    command.insert(command.end(), options.begin(), options.end());
    const Finished done = call(command);
    INFO(done.err);
    CHECK(done.status == 0);
    return done;
  };
  const std::string config = folder / "own.yaml";
  const std::vector<std::string> layers{"--set",
                                        "model.layers=[{dense: 64}, relu, {dense: 64}, relu, {" + layer + "}]"};
  CHECK(contains(
      called({"validate", config}, {}).err,
      "and outputs, which are logarithms of rates, begin near 0 (0 is a rate of 1): this trains slowly, or not at "
      "all; let them begin at the logarithm of the mean: end the layers with " +
          layer));
  CHECK_FALSE(contains(called({"validate", config}, layers).err, "logarithms of rates"));
  called({"run", config, "-q", "--run-dir", folder / "run", "--overwrite"}, layers);
  const auto summary = nlohmann::ordered_json::parse(test::read_text(folder / "run/summary.json"));
  CHECK(summary.at("final").at("validation").at("r2").get<double>() > 0.9);
}

TEST_CASE("init csv selects by no metric that has no value on its validation examples", "[app]") {
  const TemporaryFolder folder;
  // The rare class has one row, and validation takes a tenth.
  std::string table = "x,clicked\n";
  for (int i = 0; i < 12; ++i) table += std::to_string(i * 7 % 12) + (i == 3 ? ".5,yes\n" : ".5,no\n");
  const std::string config = trained(folder, table);
  CHECK(contains(config, "metrics: [accuracy]\n"));
  CHECK(contains(config, "checkpoint: {best: {metric: loss}} "));
  CHECK_FALSE(contains(config, "roc_auc"));
}
