// data.source.npz.channels through the program: what a run decides, writes and keeps.
#include <filesystem>
#include <fstream>

#include "tests/app/call.h"
#include "tests/catch.h"
#include "tests/data/files.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using tests::call;
using tests::Finished;

namespace {

// 40 signals of 6 times and 2 channels; a target that the second channel decides.
std::string signals(const std::string& type) {
  std::string x, y;
  for (int i = 0; i < 40; ++i) {
    for (int t = 0; t < 6; ++t) {
      const std::vector<float> pair = {static_cast<float>((i * 7 + t) % 5), static_cast<float>(1000 + 10 * (i % 4))};
      if (type == "|u1") {
        x += {static_cast<char>(pair[0]), static_cast<char>(i % 4)};
      } else {
        x += raw(pair);
      }
    }
    y += raw(std::vector<float>{static_cast<float>(i % 4)});
  }
  return archive({{"x_train.npy", npy(type, "(40, 6, 2)", x)}, {"y_train.npy", npy("<f4", "(40,)", y)}});
}

struct Own {
  TemporaryFolder folder;
  std::string dir = folder / "run";

  explicit Own(const std::string& layers = "flatten, {dense: 1}", const std::string& type = "<f4") {
    folder.write("s.npz", signals(type));
    folder.write("c.yaml",
                 "mesh: {axes: {devices: 2}}\ndata:\n  source: {npz: {file: s.npz, train: [x_train, y_train]}}\n"
                 "  batch_size: 8\n  normalize: auto\nmodel: {layers: [" +
                     layers +
                     "]}\nloss: mean_squared_error\noptimizer: {adam: {}, learning_rate: 0.01}\n"
                     "train: {duration: 2 epochs}\n");
  }
  Finished run(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"run", folder / "c.yaml", "--run-dir", dir, "--progress", "none"});
    return call(more);
  }
  std::string config() const { return test::read_text(dir + "/config.yaml"); }
  // As the folder of an older version: its config does not have the key, and its marker names no format.
  void make_older() const {
    std::string text = config();
    const std::string key = ", channels: none";
    text.erase(text.find(key), key.size());
    test::write_text(dir + "/config.yaml", text);
    std::string marker = test::read_text(dir + "/.pmaptrain");
    marker.erase(marker.find("Format: "));
    test::write_text(dir + "/.pmaptrain", marker);
  }
};

}  // namespace

TEST_CASE("a run says what channels: auto is, and its config has it", "[app]") {
  const Own own;
  const Finished valid = call({"validate", own.folder / "c.yaml"});
  CHECK(contains(valid.out,
                 "note: npz: channels is last for f32[N,6,2]: examples are sequences [6,2] with 2 channels; "
                 "channels: none would make them pictures [6,2,1]\n"));
  REQUIRE(own.run().status == 0);
  CHECK(contains(own.config(), "channels: last}"));
  CHECK(contains(test::read_text(own.dir + "/.pmaptrain"), "\nFormat: 2\n"));
  CHECK(contains(test::read_text(own.dir + "/checkpoints/last/state.json"), "\"input\": {\n    \"dtype\": \"f32\""));
  // Its config means the same as the config with auto.
  CHECK(own.run({"--resume", "--set", "train.duration=3 epochs"}).status == 0);
  CHECK(contains(own.run({"--resume", "--set", "data.source.npz.channels=none"}).err,
                 "--resume cannot change data.source.npz.channels: the run has last, this config none"));
  CHECK(call({"eval", own.dir, "--split", "train"}).status == 0);
  own.folder.write("x.npy", npy("<f4", "(1, 6, 2)", raw(std::vector<float>(12, 1))));
  CHECK(call({"predict", own.dir, "--input", own.folder / "x.npy", "--output", own.folder / "p.csv"}).status == 0);
}

TEST_CASE("a run folder of an older version takes arrays for pictures, as it did", "[app]") {
  const Own own;
  REQUIRE(own.run({"--set", "data.source.npz.channels=none"}).status == 0);
  own.make_older();
  const Finished eval = call({"eval", own.dir, "--split", "train"});
  INFO(eval.err);
  CHECK(eval.status == 0);
  own.folder.write("x.npy", npy("<f4", "(1, 6, 2)", raw(std::vector<float>(12, 1))));
  CHECK(call({"predict", own.dir, "--input", own.folder / "x.npy", "--output", own.folder / "p.csv"}).status == 0);
  CHECK(call({"export", own.dir, "--output", own.folder / "m.onnx"}).status == 0);
  const Finished resumed = own.run({"--resume", "--set", "train.duration=3 epochs"});
  INFO(resumed.err);
  CHECK(resumed.status == 0);
  CHECK(contains(own.config(), "channels: none}"));
  CHECK(contains(test::read_text(own.dir + "/.pmaptrain"), "\nFormat: 2\n"));
}

TEST_CASE("a layer of images on a sequence is told channels: none", "[app]") {
  const Own own("{conv: {features: 2, kernel_size: [2, 2]}}, flatten, {dense: 1}");
  const Finished refused = call({"validate", own.folder / "c.yaml"});
  CHECK(refused.status == 2);
  CHECK(contains(refused.err, "takes images [height,width,channels]; its input is f32[6,2]"));
  CHECK(contains(refused.err, "help: data.source.npz.channels: none takes arrays (N, height, width) for pictures"));
  CHECK(contains(refused.err, "; a kernel_size of one number, such as [3], slides over the positions of a sequence\n"));
  CHECK(call({"validate", own.folder / "c.yaml", "--set", "data.source.npz.channels=none"}).status == 0);
  const Own bytes("{conv: {features: 2, kernel_size: [2, 2]}}, flatten, {dense: 1}", "|u1");
  CHECK(contains(call({"validate", bytes.folder / "c.yaml"}).out, "channels is none for u8[N,6,2]"));
}

TEST_CASE("init npz writes the channels that it found, and its config runs", "[app]") {
  const Own own;
  const std::string file = own.folder / "own.yaml";
  const Finished init = call({"init", "npz", own.folder / "s.npz", file});
  INFO(init.err);
  REQUIRE(init.status == 0);
  CHECK(contains(test::read_text(file), "      channels: last "));
  CHECK(call({"run", file, "--run-dir", own.folder / "own", "--max-steps", "2", "-q"}).status == 0);
}

TEST_CASE("labels of shape (N, 1) are one label a row, unless the model keeps the position", "[app]") {
  const TemporaryFolder folder;
  std::vector<std::int64_t> tokens, labels;
  for (int i = 0; i < 32; ++i) {
    tokens.push_back(i % 5);
    labels.push_back(i % 3);
  }
  folder.write("t.npz",
               archive({{"x.npy", npy("<i8", "(32, 1)", raw(tokens))}, {"y.npy", npy("<i8", "(32, 1)", raw(labels))}}));
  for (const std::string layers : {"", "flatten, "}) {
    folder.write("c.yaml",
                 "mesh: {axes: {devices: 2}}\ndata:\n  source: {npz: {file: t.npz, train: [x, y]}}\n  batch_size: 8\n"
                 "model: {layers: [{embedding: {num_embeddings: 5, features: 4}}, " +
                     layers +
                     "{dense: 3}]}\nloss: softmax_cross_entropy\nmetrics: [accuracy]\n"
                     "optimizer: {adam: {}, learning_rate: 0.01}\ntrain: {duration: 1 epoch}\n");
    const Finished run = call({"run", folder / "c.yaml", "--run-dir", folder / "run", "--overwrite", "-q"});
    INFO(run.err);
    CHECK(run.status == 0);
  }
}
