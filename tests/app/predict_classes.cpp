// predict --as classes: of a model with more outputs than the training examples have classes.
#include <cstdint>
#include <string>
#include <vector>

#include "tests/app/call.h"
#include "tests/app/predicting.h"
#include "tests/catch.h"
#include "tests/data/files.h"

using namespace pmaptrain;
using namespace pmaptrain::tests;
using pmaptrain::testing::archive;
using pmaptrain::testing::npy;
using pmaptrain::testing::raw;

namespace {

// Ten outputs, the largest of which is always that of class 7: of the first two, -x and x.
const std::string ten_outputs =
    "model.init={values: {dense_0.kernel: [[-1, 1, 0, 0, 0, 0, 0, 0, 0, 0]], dense_0.bias: [0, 0, 0, 0, 0, 0, 0, 9, 0, "
    "0]}}";
const std::string hardly = "optimizer.learning_rate=1.0e-9";
const std::string note =
    "note: the model has 10 outputs and the training examples 2 classes: outputs 2 to 9 cannot be "
    "predicted\n";

// 32 examples, -1 and 1 by turns, and these labels by turns; the last label is that of one example alone.
std::string archive_of(std::int64_t even, std::int64_t odd, std::int64_t last) {
  std::vector<float> numbers;
  std::vector<std::int64_t> labels;
  for (int i = 0; i < 32; ++i) {
    numbers.push_back(i % 2 == 0 ? -1.0F : 1.0F);
    labels.push_back(i == 31 ? last : i % 2 == 0 ? even : odd);
  }
  return archive({{"x.npy", npy("<f4", "(32, 1)", raw(numbers))}, {"y.npy", npy("<i8", "(32,)", raw(labels))}});
}

// The classes of -1, 1 and 3, and the notes.
std::string predicted(const TrainedRun& run, const std::vector<std::string>& options = {}) {
  run.folder.write("new.npy", npy("<f4", "(3, 1)", raw(std::vector<float>{-1, 1, 3})));
  std::vector<std::string> all{"predict", run.dir, "--input", run.folder / "new.npy", "--output", "-"};
  all.insert(all.end(), options.begin(), options.end());
  const Finished done = call(all);
  CHECK(done.status == 0);
  return done.out + done.err;
}

}  // namespace

TEST_CASE("predict writes no class that the training examples do not have, and says so", "[app]") {
  const std::string source = "  source: {npz: {file: d.npz, train: [x, y]}}\n";
  TrainedRun run;
  run.folder.write("d.npz", archive_of(0, 1, 1));
  run.train(source, "dense: 10", "", {ten_outputs, hardly});
  CHECK(predicted(run) == "prediction\n0\n1\n1\n" + note);
  // What the outputs are is not hidden.
  const std::string logits = predicted(run, {"--as", "logits"});
  CHECK(logits.starts_with("logit_0,logit_1,logit_2,"));
  CHECK(contains(logits, "logit_9\n"));
  CHECK(logits.find("note: ") == std::string::npos);
  CHECK(contains(predicted(run, {"--as", "probabilities"}), ",probability_7,"));
}

TEST_CASE("a label that is ignored is no class to predict", "[app]") {
  TrainedRun run;
  run.folder.write("d.npz", archive_of(0, 1, 9));
  run.train("  source: {npz: {file: d.npz, train: [x, y]}}\n", "dense: 10",
            "loss: {softmax_cross_entropy: {ignore_label: 9}}\n", {ten_outputs, hardly});
  CHECK(predicted(run) == "prediction\n0\n1\n1\n" + note);
}

TEST_CASE("predictions of a class with a name have one, whatever the number of outputs", "[app]") {
  TrainedRun run;
  std::string table = "x,y\n";
  for (int i = 0; i < 32; ++i) table += i % 2 == 0 ? "-1,no\n" : "1,yes\n";
  run.folder.write("d.csv", table);
  run.folder.write("new.csv", "x\n-1\n1\n");
  run.train("  source: {csv: {train: d.csv, target: y}}\n", "dense: 10", "", {ten_outputs, hardly});
  CHECK(run.csv("new.csv") == "prediction\nno\nyes\n");
}

TEST_CASE("an ensemble and its members predict classes of the training examples alone", "[app]") {
  TrainedRun run;
  run.folder.write("d.npz", archive_of(0, 1, 1));
  run.train("  source: {npz: {file: d.npz, train: [x, y]}}\n", "dense: 10", "",
            {ten_outputs, hardly, "mesh.axes=[{members: 2}, {devices: 2}]",
             "ensemble={axis: members, vary: {seed: [1, 2]}}"});
  CHECK(predicted(run) == "prediction\n0\n1\n1\n" + note);
  CHECK(predicted(run, {"--member", "1"}) == "prediction\n0\n1\n1\n" + note);
}
