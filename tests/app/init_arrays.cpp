// init for archives of arrays and folders of images.
#include <filesystem>
#include <string>
#include <vector>

#include "tests/app/call.h"
#include "tests/app/init.h"
#include "tests/catch.h"
#include "tests/data/files.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using namespace pmaptrain::tests;

TEST_CASE("init npz finds arrays by their names, or where there are only two", "[app]") {
  const TemporaryFolder folder;
  const std::string images = npy("|u1", "(40, 12, 12)", std::string(40 * 144, '\1'));
  std::string labels;
  for (int i = 0; i < 40; ++i) labels += static_cast<char>(i % 4);
  const std::string targets = npy("|u1", "(40,)", labels);
  const std::string named = folder.write(
      "named.npz",
      archive({{"X_test.npy", images}, {"y_test.npy", targets}, {"X_train.npy", images}, {"y_train.npy", targets}}));
  const std::string config = written(folder, "npz", named);
  CHECK(contains(config, "train: [X_train, y_train]\n"));
  CHECK(contains(config, "test: [X_test, y_test]\n"));
  CHECK(contains(config, "validation: 0.1 "));
  CHECK(contains(config, "- max_pool: {window_shape: [2, 2], strides: [2, 2]}  # -> (6, 6, 32)\n"));
  CHECK(contains(config, "- dense: 4 "));
  const std::string pair = folder.write("pair.npz", archive({{"foo.npy", targets}, {"bar.npy", images}}));
  CHECK(contains(written(folder, "npz", pair), "train: [bar, foo]\n"));
  const std::string odd = folder.write("odd.npz", archive({{"a.npy", images}, {"b.npy", targets}, {"c.npy", targets}}));
  const Finished refused = call({"init", "npz", odd, folder / "odd.yaml"});
  CHECK(refused.status == 3);
  CHECK(contains(refused.err, "are inputs and targets is not clear: it has 'a' [40,12,12], 'b' [40], 'c' [40]"));
}

TEST_CASE("images whose channels come first are told by init and by run in the same words", "[app]") {
  const TemporaryFolder folder;
  const std::string images = npy("|u1", "(20, 3, 16, 16)", std::string(20 * 3 * 16 * 16, '\7'));
  std::string each;
  for (int i = 0; i < 20; ++i) each += static_cast<char>(i % 2);
  const std::string labels = npy("|u1", "(20,)", each);
  const std::string data = folder.write("first.npz", archive({{"x.npy", images}, {"y.npy", labels}}));
  const Finished init = call({"init", "npz", data, folder / "first.yaml"});
  CHECK(init.status == 0);
  const std::string words = "inputs of shape [3,16,16] look like images whose channels come first; they are read as";
  CHECK(contains(init.out + init.err, words));
  const Finished validate = call({"validate", folder / "first.yaml", "--set",
                                  "model.layers=[{conv: {features: 4, kernel_size: [3, 3]}}, flatten, {dense: 2}]"});
  CHECK(validate.status == 0);
  CHECK(contains(validate.out + validate.err, words));
}

TEST_CASE("init images finds splits, classes and a common size", "[app]") {
  const TemporaryFolder folder;
  const std::string source = "tests/data/images/";
  for (const std::string split : {"train", "val"}) {
    for (const std::string name : {"cats", "dogs"}) {
      const std::filesystem::path to = folder.path() / "photos" / split / name;
      std::filesystem::create_directories(to);
      for (int i = 0; i < 8; ++i) {
        std::filesystem::copy_file(source + (i % 2 == 0 ? "rgb.png" : "rgb.jpg"),
                                   to / (std::to_string(i) + (i % 2 == 0 ? ".png" : ".jpg")));
      }
    }
  }
  const std::string config = written(folder, "images", folder / "photos");
  CHECK(contains(config, "# Training on photos: 16 examples of u8["));
  CHECK(contains(config, "# Classes: cats, dogs.\n"));
  CHECK(contains(config, "train: photos/train\n"));
  CHECK(contains(config, "validation: photos/val\n"));
  CHECK_FALSE(contains(config, "validation: 0.1"));
  const std::string same = written(folder, "images", folder / "photos/train");
  CHECK(contains(same, "validation: 0.1 "));
}

TEST_CASE("how data is converted is a note of validate and of a run, and no warning", "[app][process]") {
  const TemporaryFolder folder;
  std::vector<double> numbers;
  std::string labels;
  for (int i = 0; i < 64; ++i) {
    numbers.push_back(i % 5);
    labels += static_cast<char>(i % 2);
  }
  const std::string data = folder.write(
      "own.npz", archive({{"x.npy", npy("<f8", "(64, 1)", raw(numbers))}, {"y.npy", npy("|u1", "(64,)", labels)}}));
  const std::string config = folder / "own.yaml", note = "note: inputs are f64 and become f32\n";
  REQUIRE(call({"init", "npz", data, config}).status == 0);
  const Finished valid = call({"validate", config});
  CHECK(contains(valid.out, note));
  CHECK_FALSE(contains(valid.err, "become f32"));
  const Finished run = call({"run", config, "--run-dir", folder / "run", "--max-steps", "1"});
  CHECK(run.status == 0);
  CHECK(contains(test::read_text(folder / "run/log.txt"), "\n" + note));
  const Finished quiet = run_binary({"run", config, "--run-dir", folder / "quiet", "--max-steps", "1", "--quiet"});
  CHECK_FALSE(contains(quiet.err, "become f32"));
}
