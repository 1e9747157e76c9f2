// init for archives of arrays and folders of images.
#include <filesystem>
#include <string>
#include <vector>

#include "tests/app/call.h"
#include "tests/app/init.h"
#include "tests/catch.h"
#include "tests/data/files.h"
#include "tests/data/image_files.h"

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

TEST_CASE("init npz and init images say in a line what they take as inputs and targets", "[app]") {
  const TemporaryFolder folder;
  const auto told = [&](const std::string& kind, const std::string& data) {
    std::filesystem::remove(folder / "own.yaml");
    const Finished init = call({"init", kind, data, folder / "own.yaml"});
    INFO(init.err);
    CHECK(init.status == 0);
    const std::size_t at = init.out.find("\ninputs: ");
    return at == std::string::npos ? "" : init.out.substr(at + 1);
  };
  std::string labels;
  std::vector<float> numbers, prices;
  for (int i = 0; i < 40; ++i) {
    labels += static_cast<char>(i % 4);
    numbers.insert(numbers.end(), {static_cast<float>(i), 1.0F});
    prices.push_back(static_cast<float>(i) + 0.5F);
  }
  const std::string images = npy("|u1", "(40, 12, 12)", std::string(40 * 144, '\1'));
  const std::string classes =
      folder.write("classes.npz", archive({{"x_train.npy", images}, {"y_train.npy", npy("|u1", "(40,)", labels)}}));
  CHECK(told("npz", classes) ==
        "inputs: 'x_train', pictures u8[12,12,1]; target: 'y_train': classification, 4 classes; as numbers: loss: "
        "mean_squared_error with dense: 1\n");
  const std::string regression = folder.write("regression.npz", archive({{"x.npy", npy("<f4", "(40, 2)", raw(numbers))},
                                                                         {"y.npy", npy("<f4", "(40,)", raw(prices))}}));
  CHECK(told("npz", regression) == "inputs: 'x', numbers f32[2]; target: 'y': regression, its numbers\n");
  for (const std::string name : {"cats", "dogs"}) {
    std::filesystem::create_directories(folder / "photos/" + name);
    for (int i = 0; i < 12; ++i) {
      std::string pixels;
      for (int k = 0; k < 64; ++k) pixels += static_cast<char>((k + 7 * i) % 251);
      folder.write("photos/" + name + "/" + std::to_string(i) + ".png", Png{8, 8, 1, pixels, 8, 8}.build());
    }
  }
  CHECK(told("images", folder / "photos") ==
        "inputs: pictures u8[8,8,1]; target: the folder of each image: classification, 2 classes (cats, dogs)\n");
  // A folder without images is a class that nothing trains.
  std::filesystem::create_directories(folder / "photos/birds");
  CHECK(contains(told("images", folder / "photos"), "3 classes (birds, cats, dogs)"));
  CHECK(contains(read_text(folder / "own.yaml"), "# The class 'birds' has no example: add some, or remove it.\n"));
  const Finished valid = call({"validate", folder / "own.yaml"});
  CHECK(valid.status == 0);
  CHECK(contains(valid.err, "warning: the class 'birds' has no images: '" + folder / "photos/birds'"));
  CHECK(contains(valid.err, "own.yaml:15:3): add some, or remove the folder: it has an output that nothing trains\n"));
}

TEST_CASE("an empty folder that is a class too many is named, and so is the folder above that of a class", "[app]") {
  const TemporaryFolder folder;
  for (const std::string name : {"cats", "dogs"}) {
    std::filesystem::create_directories(folder / "photos/train/" + name);
    for (int i = 0; i < 12; ++i) {
      std::string pixels;
      for (int k = 0; k < 64; ++k) pixels += static_cast<char>((k + 7 * i) % 251);
      folder.write("photos/train/" + name + "/" + std::to_string(i) + ".png", Png{8, 8, 1, pixels, 8, 8}.build());
    }
  }
  written(folder, "images", folder / "photos");
  std::filesystem::create_directories(folder / "photos/train/eels");
  const Finished refused = call({"validate", folder / "own.yaml"});
  CHECK(refused.status == 3);
  CHECK(contains(refused.err,
                 "photos/train/eels' has no images, but each folder is a class: there are 3 folders, and the "
                 "model has 2 classes\n"));
  CHECK(contains(refused.err, "help: remove the empty folder, or add images of its class\n"));
  const Finished below = call({"init", "images", folder / "photos/train/cats", folder / "below.yaml"});
  CHECK(below.status == 3);
  CHECK(contains(below.err, "photos/train/cats' has images and no folders, as the folder of one class\n"));
  CHECK(contains(below.err, "pmaptrain init images " + folder / "photos\n"));
}

TEST_CASE("init npz names channels: first where a sequence would have more channels than steps", "[app]") {
  const TemporaryFolder folder;
  const auto told = [&](const std::string& shape) {
    std::filesystem::remove(folder / "own.yaml");
    std::vector<float> numbers(40 * 3 * 16);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i * 7 % 31);
    std::vector<std::int64_t> labels;
    for (int i = 0; i < 40; ++i) labels.push_back(i % 2);
    const std::string file = folder.write(
        "a.npz", archive({{"x.npy", npy("<f4", shape, raw(numbers))}, {"y.npy", npy("<i8", "(40,)", raw(labels))}}));
    const Finished init = call({"init", "npz", file, folder / "own.yaml"});
    INFO(init.err);
    CHECK(init.status == 0);
    return init.out + read_text(folder / "own.yaml");
  };
  const std::string first = told("(40, 3, 16)");
  CHECK(contains(first, "; if an example is 3 channels of 16 steps, (N, C, T): data.source.npz.channels: first\n"));
  CHECK(contains(first,
                 "channels: last                        # sequences [3,16] with 16 channels; none: pictures; "
                 "first: [16,3] with 3\n"));
  const std::string last = told("(40, 16, 3)");
  CHECK(contains(last, "# sequences [16,3] with 3 channels; none: pictures\n"));
  CHECK_FALSE(contains(last, "channels: first"));
}

TEST_CASE("init npz says what integers and whole numbers may be as well", "[app]") {
  const TemporaryFolder folder;
  const auto told = [&](const std::string& inputs, const std::string& targets) {
    std::filesystem::remove(folder / "own.yaml");
    const Finished init = call(
        {"init", "npz", folder.write("a.npz", archive({{"x.npy", inputs}, {"y.npy", targets}})), folder / "own.yaml"});
    INFO(init.err);
    CHECK(init.status == 0);
    const std::size_t at = init.out.find("; ", init.out.find("target: "));
    return at == std::string::npos ? "" : init.out.substr(at + 2);
  };
  std::vector<std::int64_t> tokens, labels, signs;
  std::vector<float> numbers, classes;
  for (int i = 0; i < 40; ++i) {
    for (int k = 0; k < 8; ++k) tokens.push_back((i * 7 + k * 3) % 27), labels.push_back((i + k) % 5);
    signs.push_back(i % 2 == 0 ? -1 : 1);
    classes.push_back(static_cast<float>(i % 3));
    numbers.insert(numbers.end(), {static_cast<float>(i), 0.5F});
  }
  const std::string sequences = npy("<i8", "(40, 8)", raw(tokens)), points = npy("<f4", "(40, 2)", raw(numbers));
  const std::string begin =
      "if the inputs are tokens: begin the layers with embedding: {num_embeddings: 27, features: 64}";
  CHECK(told(sequences, npy("<i8", "(40, 8)", raw(labels))) ==
        begin +
            ", end them with dense: 5, and take loss: softmax_cross_entropy with metrics: [accuracy] for a class at "
            "each position, without normalize, normalize_targets and the metric of checkpoint and early_stopping\n");
  CHECK(told(sequences, npy("<f4", "(40,)", raw(std::vector<float>(numbers.begin(), numbers.begin() + 40)))) ==
        begin + " and flatten, without normalize\n");
  CHECK(contains(told(points, npy("<f4", "(40,)", raw(classes))),
                 "3 distinct whole numbers: for classes store integers from 0 (y.astype(int))\n"));
  CHECK(told(points, npy("<i8", "(40,)", raw(signs))) ==
        "2 distinct whole numbers: for classes store integers from 0 (y - y.min())\n");
  CHECK(told(points, npy("<f4", "(40,)", raw(std::vector<float>(numbers.begin() + 40, numbers.end())))).empty());
}

TEST_CASE("init npz writes a model for targets that are images, which ends with their shape", "[app]") {
  const TemporaryFolder folder;
  const auto config = [&](const std::string& type, const std::string& shape, const std::string& targets) {
    const std::string pictures = npy("|u1", "(40, 8, 8, 3)", std::string(40 * 192, '\1'));
    return written(folder, "npz",
                   folder.write("a.npz", archive({{"x.npy", pictures}, {"y.npy", npy(type, shape, targets)}})));
  };
  std::vector<float> colours;
  std::string mask, other;
  for (int i = 0; i < 40 * 64; ++i) {
    for (int k = 0; k < 3; ++k) colours.push_back(static_cast<float>(i % 17) / 16);
    mask += static_cast<char>(i % 3 == 0 ? 1 : 0);
    if (i % 4 == 0) other += static_cast<char>(i % 7);
  }
  const std::string images = config("<f4", "(40, 8, 8, 3)", raw(colours));
  CHECK(contains(images, "- conv: {features: 3, kernel_size: [3, 3]}"));
  CHECK(contains(images, "loss: mean_squared_error\n"));
  CHECK_FALSE(contains(images, "flatten"));
  const std::string masks = config("|u1", "(40, 8, 8)", mask);
  CHECK(contains(masks, "- conv: {features: 2, kernel_size: [3, 3]}  # one logit for each class, at each pixel\n"));
  CHECK_FALSE(contains(masks, "reshape"));
  CHECK_FALSE(contains(masks, "For numbers"));
  CHECK(contains(masks, "loss: softmax_cross_entropy\n"));
  CHECK(contains(masks, "metrics: [accuracy, mean_iou]\n"));
  mask[5] = '\xff';
  const std::string some = config("|u1", "(40, 8, 8)", mask);
  CHECK(contains(some, "- conv: {features: 2, kernel_size: [3, 3]}"));
  CHECK(contains(some, "loss: {softmax_cross_entropy: {ignore_label: 255}}\n"));
  std::string greys;
  for (int i = 0; i < 40 * 64; ++i) greys += static_cast<char>(i % 251);
  const std::string grey = config("|u1", "(40, 8, 8)", greys);
  CHECK(contains(grey, "- conv: {features: 1, kernel_size: [3, 3]}"));
  CHECK(contains(grey, "- reshape: [8, 8] "));
  CHECK(contains(grey, "loss: mean_squared_error\n"));
  const std::string smaller = config("|u1", "(40, 4, 4)", other);
  CHECK(contains(smaller, "- dense: 112 "));
  CHECK(contains(smaller, "- reshape: [4, 4, 7] "));
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
