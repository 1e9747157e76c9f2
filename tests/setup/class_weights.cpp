// class_weights: balanced is the list that it stands for, in training and in evaluation.
#include <cmath>
#include <filesystem>

#include "core/run/checkpoint.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

namespace fs = std::filesystem;

// 48 examples of which a third is of class 1, or in the test split half.
struct Examples {
  TemporaryFolder folder;

  Examples() {
    std::string train = "x,z,y\n", test = train;
    for (int i = 0; i < 48; ++i) {
      const std::string row = std::to_string(i * 7 % 13) + "," + std::to_string(i * 5 % 11) + ",";
      train += row + (i % 3 == 0 ? "1\n" : "0\n");
      test += row + (i % 2 == 0 ? "1\n" : "0\n");
    }
    folder.write("train.csv", train);
    folder.write("test.csv", test);
  }

  setup::Setup setup(const std::string& loss, int outputs) const {
    return setup_of_text(R"(
mesh: {axes: {devices: 4}}
data:
  source: {csv: {train: )" +
                         (folder / "train.csv") + ", test: " + (folder / "test.csv") + R"(, target: y}}
  batch_size: 16
  normalize: auto
model: {layers: [{dense: 4}, relu, {dense: )" +
                         std::to_string(outputs) + R"(}]}
loss: {)" + loss + R"(}
metrics: [accuracy]
optimizer: {adam: {}, learning_rate: 0.01}
train: {duration: 3 epochs}
)");
  }
};

}  // namespace

TEST_CASE("balanced class weights train and evaluate as the list that they are", "[setup]") {
  const Examples examples;
  for (const auto& [loss, outputs] : {std::pair{"softmax_cross_entropy", 2}, {"sigmoid_cross_entropy", 1}}) {
    INFO(loss);
    const auto setup = [&, name = std::string(loss), count = outputs](const std::string& options) {
      return examples.setup(name + ": {" + options + "}", count);
    };
    const setup::Setup balanced = setup("class_weights: balanced");
    const Trained trained = train_setup_in(examples.folder / loss, balanced);
    CHECK(trained.same_bits(train_setup(setup("class_weights: [0.75, 1.5]"))));
    CHECK_FALSE(trained.same_bits(train_setup(setup(""))));
    CHECK(run::load_run_state(fs::path(examples.folder / loss) / "checkpoints/last").encoding.class_weights ==
          std::vector<double>{0.75, 1.5});
    CHECK(test::contains(balanced.loaded.resolved, "class_weights: balanced"));
    // By the checkpoint, though the test split has another balance.
    fs::rename(examples.folder / "train.csv", examples.folder / "away.csv");
    const auto evaluated = evaluate::evaluate_checkpoint(balanced.loaded, examples.folder / loss, "last", "test");
    fs::rename(examples.folder / "away.csv", examples.folder / "train.csv");
    CHECK(evaluated.front().measures == trained.result().final_measures.back().second);
  }
}

TEST_CASE("class weights of sigmoid_cross_entropy are for labels 0 and 1", "[setup]") {
  const std::string config = R"(
data: {source: {values: {inputs: [[0], [1]], targets: [[0, 1], [1, 0]]}}, batch_size: all}
model: {layers: [{dense: 2}]}
loss: {sigmoid_cross_entropy: {class_weights: WEIGHTS}}
optimizer: {adam: {}, learning_rate: 0.01}
train: {duration: 1 step}
)";
  for (const std::string weights : {"balanced", "[1, 2]"}) {
    std::string text = config;
    text.replace(text.find("WEIGHTS"), 7, weights);
    CHECK(
        test::refusal([&] { setup_of_text(text); }, ExitStatus::usage) ==
        "sigmoid_cross_entropy takes class_weights with labels 0 and 1 alone; the targets are f32[2] | remove them, or "
        "use softmax_cross_entropy; for several labels there are positive_weights");
  }
}
