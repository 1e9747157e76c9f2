// predict on sequences of different lengths.
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
