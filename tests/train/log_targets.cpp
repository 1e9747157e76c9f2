// data.normalize_targets: log. The loss is of log(1 + target), everything else of the targets.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "core/base/text.h"
#include "core/evaluate/predictor.h"
#include "core/run/checkpoint.h"
#include "tests/catch.h"
#include "tests/data/files.h"
#include "tests/session_run.h"
#include "tests/train/rows_text.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

namespace fs = std::filesystem;

// 20 prices, skewed to the right, and ages beside them.
struct Prices {
  Rows inputs, targets;

  Prices() {
    for (int i = 0; i < 20; ++i) {
      const double x = (i * 7 % 13) / 6.0 - 1;
      inputs.push_back({x, i % 3 - 1.0});
      targets.push_back({i == 0 ? 0.0 : static_cast<double>(static_cast<float>(std::exp(3 * x + 5))), 40 - 10 * x});
    }
  }

  std::string config(const Rows& of, const std::string& more = "") const {
    return "mesh: {axes: {devices: 2}}\ndata:\n  source: {values: {inputs: " + rows_text(inputs) +
           ", targets: " + rows_text(of) + "}}\n  batch_size: 10\n" + more +
           "model: {layers: [{dense: 6}, tanh, {dense: " + std::to_string(of.front().size()) +
           "}]}\nloss: mean_squared_error\nmetrics: [mean_absolute_error, mean_squared_error, r2, "
           "mean_absolute_percentage_error]\n"
           "optimizer: {adam: {}, learning_rate: 0.02}\ntrain: {duration: 3 epochs}\n";
  }
  Rows prices() const {
    Rows found;
    for (const std::vector<double>& row : targets) found.push_back({row[0]});
    return found;
  }
};

// The mean and the deviation of some numbers, in f64.
std::pair<double, double> mean_and_deviation(const std::vector<double>& values) {
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean) / static_cast<double>(values.size());
  return {mean, std::sqrt(squares)};
}

std::vector<double> logarithms(const Rows& rows) {
  std::vector<double> found;
  for (const std::vector<double>& row : rows) found.push_back(std::log1p(row[0]));
  return found;
}

double value_of(const run::Measures& measures, const std::string& name) {
  for (const auto& [found, value] : measures) {
    if (found == name) return value;
  }
  FAIL(name);
  return 0;
}

bool is_close(double found, double expected, double tolerance = 1e-4) {
  UNSCOPED_INFO(found << ", expected " << expected);
  return std::abs(found - expected) <= tolerance * std::abs(expected);
}

std::vector<double> predicted_values(const spec::Loaded& loaded, const fs::path& run, const TemporaryFolder& folder,
                                     const Rows& inputs) {
  std::vector<float> numbers;
  for (const std::vector<double>& row : inputs) numbers.insert(numbers.end(), row.begin(), row.end());
  evaluate::PredictionRequest request;
  request.input.path = folder.write("x.npy", npy("<f4", "(" + std::to_string(inputs.size()) + ", 2)", raw(numbers)));
  std::vector<double> values;
  evaluate::Predictor(loaded, run, request).run([&](std::int64_t, std::span<const std::byte> rows) {
    std::vector<float> read(rows.size() / sizeof(float));
    std::memcpy(read.data(), rows.data(), rows.size());
    values.insert(values.end(), read.begin(), read.end());
  });
  return values;
}

}  // namespace

TEST_CASE("a run on logarithms is the run on targets that were made logarithms and normalised before", "[train]") {
  const Prices prices;
  const std::vector<double> logs = logarithms(prices.prices());
  const auto [mean, std] = mean_and_deviation(logs);
  Rows before;
  for (const double log : logs) before.push_back({(log - mean) / std});
  const setup::Setup setup = setup_of_text(prices.config(prices.prices(), "  normalize_targets: log\n"), {});
  REQUIRE(setup.source.encoding.targets);
  CHECK(is_close(setup.source.encoding.targets->mean[0], mean, 1e-12));
  CHECK(is_close(setup.source.encoding.targets->std[0], std, 1e-12));
  const Trained found = train_setup(setup), expected = train_setup(setup_of_text(prices.config(before), {}));
  CHECK(is_close(value_of(found.result().final_measures.front().second, "loss"),
                 value_of(expected.result().final_measures.front().second, "loss")));
  for (const auto& [name, tensor] : found.parameters) {
    const std::vector<double> a = to_doubles(tensor), b = to_doubles(expected.parameters.at(name));
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) < 1e-4);
  }
}

TEST_CASE("predictions of logarithms are inverted, finite and at least 0, and metrics are those of the targets",
          "[train]") {
  const Prices prices;
  const TemporaryFolder folder;
  const setup::Setup setup = setup_of_text(prices.config(prices.prices(), "  normalize_targets: log\n"), {});
  const fs::path run = folder / "run";
  train_setup_in(run, setup);
  const std::vector<double> values = predicted_values(setup.loaded, run, folder, prices.inputs);
  REQUIRE(values.size() == 20);
  double absolute = 0, share = 0, squares = 0, loss = 0, total = 0;
  const auto [mean, std] = mean_and_deviation(logarithms(prices.prices()));
  const auto of_targets = mean_and_deviation([&] {
    std::vector<double> all;
    for (const std::vector<double>& row : prices.prices()) all.push_back(row[0]);
    return all;
  }());
  for (std::size_t i = 0; i < 20; ++i) {
    const double target = prices.targets[i][0], error = values[i] - target;
    CHECK(values[i] >= 0);
    absolute += std::abs(error) / 20;
    share += std::abs(error) / std::max(target, 0x1p-52) / 20;
    squares += error * error / 20;
    const double distance = (std::log1p(values[i]) - std::log1p(target)) / std;
    loss += distance * distance / 20;
    total += values[i];
  }
  CHECK(total > 0);
  const auto evaluated = evaluate::evaluate_checkpoint(setup.loaded, run, "last", "train").front().measures;
  CHECK(is_close(value_of(evaluated, "mean_absolute_error"), absolute));
  CHECK(is_close(value_of(evaluated, "mean_absolute_percentage_error"), share));
  CHECK(is_close(value_of(evaluated, "mean_squared_error"), squares));
  CHECK(is_close(value_of(evaluated, "r2"), 1 - squares / (of_targets.second * of_targets.second), 1e-3));
  CHECK(is_close(value_of(evaluated, "loss"), loss, 1e-3));
  const Rows far = {{1e6, 1e6}, {-1e6, -1e6}, {1e6, -1e6}, {-1e6, 1e6}};
  const setup::Setup linear =
      setup_of_text(prices.config(prices.prices(), "  normalize_targets: log\n"), {"model.layers=[{dense: 1}]"});
  train_setup_in(folder / "linear", linear);
  for (const double value : predicted_values(linear.loaded, folder / "linear", folder, far)) {
    CHECK(std::isfinite(value));
    CHECK(value >= 0);
  }
}

TEST_CASE("each output has the scale that normalize_targets names", "[train]") {
  const Prices prices;
  const TemporaryFolder folder;
  const setup::Setup setup =
      setup_of_text(prices.config(prices.targets, "  normalize_targets: {\"0\": log, \"1\": auto}\n"), {});
  const auto [mean, std] = mean_and_deviation(logarithms(prices.prices()));
  CHECK(is_close(setup.source.encoding.targets->mean[0], mean, 1e-12));
  CHECK(is_close(setup.source.encoding.targets->std[0], std, 1e-12));
  CHECK(setup.source.encoding.targets->mean[1] > 30);
  train_setup_in(folder / "run", setup);
  const std::vector<double> values = predicted_values(setup.loaded, folder / "run", folder, prices.inputs);
  REQUIRE(values.size() == 40);
  double absolute = 0;
  for (std::size_t i = 0; i < 40; ++i) absolute += std::abs(values[i] - prices.targets[i / 2][i % 2]) / 40;
  const auto evaluated = evaluate::evaluate_checkpoint(setup.loaded, folder / "run", "last", "train").front().measures;
  CHECK(is_close(value_of(evaluated, "mean_absolute_error"), absolute));
  const setup::Setup one = setup_of_text(prices.config(prices.targets, "  normalize_targets: {\"0\": log}\n"), {});
  CHECK(one.source.encoding.targets->mean[1] == 0);
  CHECK(one.source.encoding.targets->std[1] == 1);
  CHECK(test::refusal([&] { setup_of_text(prices.config(prices.targets, "  normalize_targets: {price: log}\n"), {}); },
                      ExitStatus::usage) ==
        "normalize_targets names 'price', which is no output | the outputs are 0, 1");
}

TEST_CASE("a negative target has no logarithm, and is named by its example, or by its line", "[train]") {
  Prices prices;
  prices.targets[7][0] = -0.5;
  CHECK(test::refusal([&] { setup_of_text(prices.config(prices.prices(), "  normalize_targets: log\n"), {}); },
                      ExitStatus::data) ==
        "the target of example 7 in values.targets has -0.5, but normalize_targets: log takes targets of at least 0 | "
        "normalize_targets: auto accepts any numbers");
  // A blank line, a cell of two lines, and rows that are left out count as lines.
  const TemporaryFolder folder;
  std::string table = "x,name,y\n\n1,\"a\nb\",1\n";
  for (int i = 0; i < 200; ++i) table += i == 4 ? "1,c\n" : "1,c,2\n";
  const std::string first = folder.write("a.csv", table), second = folder.write("b.csv", "x,name,y\n1,c,1\n1,c,-2\n");
  const auto refused = [&](const std::string& loss) {
    return test::refusal(
        [&] {
          setup_of_text("mesh: {axes: {devices: 1}}\ndata: {batch_size: 2, source: {csv: {train: [" + first + ", " +
                            second + "], inputs: [x], target: y, on_error: skip}}" + loss +
                            "\nmodel: {layers: [dense: 1]}\noptimizer: {adam: {}, learning_rate: 0.1}\n"
                            "train: {duration: 1 epoch}\n",
                        {});
        },
        ExitStatus::data);
  };
  CHECK(refused(", normalize_targets: log}\nloss: mean_squared_error")
            .starts_with("the target in '" + second + "', line 3 has -2.0, but normalize_targets: log takes"));
  CHECK(refused("}\nloss: poisson")
            .starts_with("the target in '" + second + "', line 3 is -2.0, but poisson takes counts"));
  folder.write("a.csv", table + "1,c,-7\n");
  CHECK(refused("}\nloss: poisson")
            .starts_with("the target in '" + first + "', line 205 is -7.0, but poisson takes counts"));
}
