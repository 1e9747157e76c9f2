// Inputs and targets that float32 cannot hold: times in seconds.
#include <cmath>
#include <fstream>

#include "core/setup/make_setup.h"
#include "core/setup/setup.h"
#include "core/spec/load.h"
#include "tests/app/call.h"
#include "tests/catch.h"
#include "tests/data/files.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using tests::call;
using tests::Finished;

namespace {

struct Times {
  TemporaryFolder folder;

  // 64 seconds t, y = t / 64, and the time 5 seconds later.
  explicit Times(const std::string& rest, const std::string& target = "y") {
    std::string rows = "t,y,later\n";
    for (int i = 0; i < 64; ++i) {
      const std::string t = std::to_string(1700000000 + i), later = std::to_string(1700000005 + i);
      rows += t + "," + std::to_string(i / 64.0) + "," + later + "\n";
    }
    folder.write("t.csv", rows);
    folder.write("c.yaml", "mesh: {axes: {devices: 2}}\ndata:\n  source: {csv: {train: t.csv, inputs: [t], target: " +
                               target + "}}\n  batch_size: 16\n" + rest +
                               "model: {layers: [{dense: 1}]}\nloss: mean_squared_error\nmetrics: [r2]\n"
                               "optimizer: {adam: {}, learning_rate: 0.05}\ntrain: {duration: 60 epochs}\n");
  }
  // The predictions for the rows, without the header.
  std::vector<double> predictions() const {
    const Finished done = call({"predict", folder / "run", "--input", folder / "t.csv", "--output", folder / "p.csv"});
    INFO(done.err);
    REQUIRE(done.status == 0);
    std::ifstream file(folder / "p.csv");
    std::string line;
    std::vector<double> found;
    for (std::getline(file, line); std::getline(file, line);) found.push_back(std::stod(line));
    return found;
  }
  Finished run() const { return call({"run", folder / "c.yaml", "--run-dir", folder / "run", "--progress", "none"}); }
};

}  // namespace

TEST_CASE("times in seconds are learned from where they are normalised, and eval and predict agree", "[app]") {
  const Times times("  normalize: auto\n");
  const Finished run = times.run();
  INFO(run.err);
  REQUIRE(run.status == 0);
  const std::vector<double> found = times.predictions();
  REQUIRE(found.size() == 64);
  double squares = 0, total = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    const double target = static_cast<double>(i) / 64;
    squares += (found[i] - target) * (found[i] - target);
    total += (target - 63.0 / 128) * (target - 63.0 / 128);
  }
  CHECK(1 - squares / total > 0.99);
  const Finished eval = call({"eval", times.folder / "run", "--split", "train", "--json"});
  const std::size_t at = eval.out.find("\"r2\": ");
  REQUIRE(at != std::string::npos);
  CHECK(std::abs(std::stod(eval.out.substr(at + 6)) - (1 - squares / total)) < 1e-4);
  CHECK(call({"export", times.folder / "run", "--output", times.folder / "m.onnx"}).status == 0);
}

TEST_CASE("times that are targets are predicted as float64", "[app]") {
  const Times times("  normalize: auto\n  normalize_targets: auto\n", "later");
  const Finished run = times.run();
  INFO(run.err);
  REQUIRE(run.status == 0);
  const std::vector<double> found = times.predictions();
  REQUIRE(found.size() == 64);
  for (std::size_t i = 0; i < 64; ++i) CHECK(std::abs(found[i] - (1700000005.0 + static_cast<double>(i))) < 2);
  CHECK(call({"export", times.folder / "run", "--output", times.folder / "m.onnx"}).status == 0);
}

TEST_CASE("times that are one number in float32 are refused where nothing normalises them", "[app]") {
  const Times times("");
  const Finished inputs = call({"validate", times.folder / "c.yaml"});
  CHECK(inputs.status == 3);
  CHECK(contains(inputs.err, "column 't' has 64 different numbers, which are one in float32"));
  CHECK(contains(inputs.err, "help: data.normalize: auto takes their mean and normalises them in float64"));
  const Times targets("  normalize: auto\n", "later");
  const Finished warned = call({"validate", targets.folder / "c.yaml"});
  CHECK(warned.status == 0);
  CHECK(contains(warned.err, "column 'later' has 64 different numbers, which are 2 in float32"));
  CHECK(contains(warned.err, "data.normalize_targets: auto takes their mean and normalises them in float64"));
  // Every other second is another number.
  std::string rows = "t,y\n";
  for (int i = 0; i < 32; ++i) rows += std::to_string(16777216 + i) + "," + std::to_string(i % 5) + "\n";
  times.folder.write("t.csv", rows);
  const Finished some = call({"validate", times.folder / "c.yaml"});
  CHECK(some.status == 0);
  CHECK(contains(some.err, "column 't' has 32 different numbers, which are 17 in float32"));
}

TEST_CASE("a run of an older version that is resumed is warned of such times, and goes on", "[app]") {
  const Times times("");
  const auto warnings = [&](bool exact) {
    data::Encoding encoding;
    encoding.exact = exact;
    std::string texts;
    const setup::Setup setup =
        setup::make_setup(spec::load(times.folder / "c.yaml", {}), setup::ScheduleOrigin(240), &encoding);
    for (const std::string& warning : setup.warnings) texts += warning + "\n";
    return texts;
  };
  CHECK(contains(warnings(false), "column 't' has 64 different numbers, which are one in float32"));
  // Other runs were told, or refused, when they began.
  CHECK_FALSE(contains(warnings(true), "in float32"));
}
