// predict on sequences of different lengths.
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/app/predicting.h"
#include "tests/catch.h"
#include "tests/data/files.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::tests;
using testing::archive;
using testing::npy;
using testing::raw;

namespace {

// Two sequences of six positions; what is behind their lengths is `padding`.
std::string sequences(float padding) {
  std::vector<float> values;
  for (int i = 0; i < 12; ++i) values.push_back(i % 6 < 3 + i / 6 ? 0.5F * static_cast<float>(i % 4) : padding);
  return npy("<f4", "(2, 6, 1)", raw(values));
}

std::string with_lengths(const std::string& inputs, const std::string& name, const std::string& of_inputs) {
  return archive({{of_inputs + ".npy", inputs}, {name + ".npy", npy("<i8", "(2,)", raw<std::int64_t>({3, 4}))}});
}

}  // namespace

TEST_CASE("predict reads lengths beside the inputs, and what is behind them has no effect", "[app]") {
  struct Case {
    std::string source, inputs, lengths;
  };
  TemporaryFolder data;
  data.write("a.npz", archive({{"x.npy", sequences(0)},
                               {"y.npy", npy("<i8", "(2,)", raw<std::int64_t>({0, 1}))},
                               {"n.npy", npy("<i8", "(2,)", raw<std::int64_t>({3, 4}))}}));
  for (const Case& each :
       {Case{"  source: {synthetic_signals: {positions: 6, shortest: 2, classes: 2, train: 32, test: 0}}\n", "inputs",
             "lengths"},
        Case{"  source: {npz: {file: '" + (data / "a.npz") + "', train: {inputs: x, targets: y, lengths: n}}}\n", "x",
             "n"}}) {
    INFO(each.source);
    TrainedRun run;
    run.train(each.source, "{conv: {features: 3, kernel_size: [3]}}, tanh, global_avg_pool, dense: 2", "",
              {"data.batch_size=2"});
    run.folder.write("zeros.npz", with_lengths(sequences(0), each.lengths, each.inputs));
    run.folder.write("other.npz", with_lengths(sequences(7), each.lengths, each.inputs));
    run.folder.write("alone.npz", archive({{each.inputs + ".npy", sequences(0)}}));
    const std::string zeros = run.csv("zeros.npz", {"--array", each.inputs, "--as", "logits"});
    CHECK(test::lines_of(zeros).size() == 3);
    CHECK(run.csv("other.npz", {"--array", each.inputs, "--as", "logits"}) == zeros);
    const Finished alone = run.predict("alone.npz", "alone.csv", {});
    CHECK(alone.status == 3);
    INFO(alone.err);
    CHECK(test::contains(alone.err,
                         "alone.npz' has no lengths of its sequences, and the model was trained with lengths\n"));
    CHECK(test::contains(alone.err, "help: save them beside the inputs: np.savez(file, x=x, " + each.lengths + "=n)"));
  }
}

TEST_CASE("numbers of positions are evaluated, predicted and averaged over members at real positions", "[app]") {
  constexpr std::int64_t examples = 24, positions = 6;
  std::vector<float> x, y;
  std::vector<std::int64_t> n;
  for (std::int64_t i = 0; i < examples; ++i) {
    n.push_back(1 + i % positions);
    for (std::int64_t t = 0; t < positions; ++t) {
      const auto phase = static_cast<float>(i + t);
      x.push_back(t < n.back() ? std::sin(phase) : NAN);
      y.push_back(t < n.back() ? 100 + 10 * std::sin(phase) : NAN);
    }
  }
  TrainedRun run;
  run.folder.write("a.npz", archive({{"x.npy", npy("<f4", "(24, 6, 1)", raw(x))},
                                     {"y.npy", npy("<f4", "(24, 6)", raw(y))},
                                     {"n.npy", npy("<i8", "(24,)", raw(n))}}));
  run.train(
      "  source: {npz: {file: a.npz, train: {inputs: x, targets: y, lengths: n}, test: {inputs: x, targets: y, "
      "lengths: "
      "n}}}\n  normalize_targets: auto\n",
      "{gru: {features: 4, bidirectional: true}}, dense: 1",
      "loss: mean_squared_error\nmetrics: [mean_absolute_error]\nensemble: {axis: members, vary: {optimizer."
      "learning_rate: [0.05, 0.05]}}\n",
      {"mesh.axes=[{members: 2}, {devices: 2}]"});
  const auto eval = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"eval", run.dir, "--split", "test", "--json"});
    return nlohmann::json::parse(call(more).out)["mean_absolute_error"].get<double>();
  };
  const double together = eval({}), alone = eval({"--member", "1"});
  CHECK(together == Approx(alone).epsilon(1e-5));
  const std::vector<std::string> lines = test::lines_of(run.csv("a.npz", {"--array", "x", "--member", "0"}));
  REQUIRE(lines.size() == 1 + examples);
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < n.size(); ++i) {
    const std::string& cells = lines[i + 1];
    std::size_t at = 0;
    for (std::int64_t t = 0; t < n[i]; ++t) {
      sum +=
          std::abs(std::stod(cells.substr(at)) - static_cast<double>(y[i * positions + static_cast<std::size_t>(t)]));
      at = cells.find(',', at) + 1;
      ++count;
    }
  }
  CHECK(sum / count == Approx(alone).epsilon(1e-4));
}
