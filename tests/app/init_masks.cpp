// init for folders of images and masks, and for arrays of sequences of different lengths.
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

namespace {

// Images and masks of these classes, in stripes; `labels` are the numbers of the classes.
void write_masks(const TemporaryFolder& folder, const std::string& name, std::int64_t height, std::int64_t width,
                 const std::string& labels) {
  for (int i = 0; i < 8; ++i) {
    std::string image, mask;
    for (std::int64_t k = 0; k < height * width; ++k) {
      const std::size_t stripe = static_cast<std::size_t>(k + i) / 3 % labels.size();
      image += static_cast<char>(40 * stripe + static_cast<std::size_t>(k % 7));
      mask += labels[stripe];
    }
    const std::string file = "/" + std::to_string(i) + ".png";
    write_in(folder, name + "/images" + file, Png{height, width, 1, image, height, width}.build());
    write_in(folder, name + "/masks" + file, Png{height, width, 1, mask, height, width}.build());
  }
}

// The notes of a config: its comments on what was left out.
std::string comments_in(const std::string& config) {
  std::string found;
  for (std::size_t at = config.find("# The array "); at != std::string::npos;
       at = config.find("# The array ", at + 1)) {
    found += config.substr(at + 2, config.find('\n', at) - at - 1);
  }
  return found;
}

}  // namespace

TEST_CASE("init images of a folder with images and masks of the same names writes a model of pixels", "[app]") {
  const TemporaryFolder folder;
  write_masks(folder, "roads/train", 14, 19, {'\0', '\2', '\xff', '\1'});
  write_masks(folder, "roads/val", 14, 19, {'\0', '\3'});
  const std::string config = written(folder, "images", folder / "roads");
  CHECK(contains(config,
                 "    image_masks:\n"
                 "      train: roads/train\n"
                 "      validation: roads/val\n"
                 "      size: [12, 16]                        # height and width that images and masks are resized to\n"
                 "      class_names: [class_0, class_1, class_2, class_3]  # of the numbers in masks: call them by "
                 "their names\n"));
  CHECK(contains(config,
                 "    - parallel:                             # the picture as it is, and what 6x8 pixels make "
                 "of it\n"));
  CHECK(
      contains(config, "    - conv: {features: 4, kernel_size: [1, 1]}  # one logit for each class, at each pixel\n"));
  CHECK(contains(config, "loss: {softmax_cross_entropy: {ignore_label: 255}}\nmetrics: [accuracy, mean_iou]\n"));
  const Finished run = call({"run", folder / "own.yaml", "--run-dir", folder / "run", "--max-steps", "3"});
  INFO(run.err);
  CHECK(run.status == 0);
  std::filesystem::remove(folder / "own.yaml");
  CHECK(contains(call({"init", "images", folder / "roads", folder / "own.yaml"}).out,
                 "\ninputs: pictures u8[12,16,1]; target: the mask of each image: classification of pixels, 4 classes; "
                 "255 marks pixels that do not count\n"));
  // A folder without splits, and masks without 255.
  const std::string plain = written(folder, "images", folder / "roads/val");
  CHECK(contains(plain, "      train: roads/val\n"));
  CHECK(contains(plain, "validation: 0.1 "));
  CHECK(contains(plain, "loss: softmax_cross_entropy\n"));
}

TEST_CASE("init images says which masks have no classes, and that one has no image", "[app]") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& labels) {
    write_masks(folder, "photos", 8, 8, labels);
    const Finished init = call({"init", "images", folder / "photos", folder / "own.yaml"});
    CHECK(init.status == 3);
    return init.err;
  };
  CHECK(contains(refused({'\0', '\xff'}),
                 "the masks of '" + folder / "photos" +
                     "' have no numbers but 0 and 255, and 255 is no class: it marks pixels that do not count\n"
                     "  help: masks of 0 and 255 become classes 0 and 1 by a division: in NumPy, mask // 255\n"));
  CHECK(contains(refused({'\0'}),
                 "' have no number but 0, so there is nothing to learn\n"
                 "  help: pixels of a mask are numbers of classes: 0, 1, ...\n"));
  CHECK(contains(refused({'\0', '\x40'}),
                 "' have numbers up to 64, which would be 65 classes\n"
                 "  help: pixels of a mask are numbers of classes, from 0 to at most 63, or 255 for none\n"));
  write_in(folder, "photos/masks/8.png", flat_png(8, 8, 1, '\0').build());
  CHECK(contains(refused({'\0', '\1'}), "the mask '" + folder / "photos/masks/8.png' has no image in '"));
}

TEST_CASE("folders called images and masks without a name in common are classes", "[app]") {
  const TemporaryFolder folder;
  for (int i = 0; i < 12; ++i) {
    const std::string picture = flat_png(8, 8, 1, static_cast<char>(i)).build();
    write_in(folder, "photos/images/a" + std::to_string(i) + ".png", picture);
    write_in(folder, "photos/masks/b" + std::to_string(i) + ".png", picture);
  }
  const std::string config = written(folder, "images", folder / "photos");
  CHECK(contains(config, "    image_folder:\n"));
  CHECK(contains(config, "# Classes: images, masks.\n"));
}

TEST_CASE("init npz takes lengths by their name, with a model of sequences", "[app]") {
  const TemporaryFolder folder;
  std::vector<std::int64_t> tokens, lengths, labels;
  std::vector<float> signals;
  for (int i = 0; i < 40; ++i) {
    for (int t = 0; t < 9; ++t) {
      tokens.push_back((i * 7 + t * 3) % 27);
      signals.insert(signals.end(), {static_cast<float>(i % 5), static_cast<float>(t)});
    }
    lengths.push_back(i % 10);
    labels.push_back(i % 3);
  }
  const std::string text = npy("<i8", "(40, 9)", raw(tokens)), n = npy("<i8", "(40,)", raw(lengths));
  const std::string waves = npy("<f4", "(40, 9, 2)", raw(signals)), y = npy("<i8", "(40,)", raw(labels));
  const auto config = [&](const std::vector<std::pair<std::string, std::string>>& arrays) {
    const std::string made = written(folder, "npz", folder.write("a.npz", archive(arrays)));
    const Finished run =
        call({"run", folder / "own.yaml", "--run-dir", folder / "run", "--max-steps", "2", "--overwrite"});
    INFO(run.err);
    CHECK(run.status == 0);
    return made;
  };
  const std::string of_tokens = config({{"x.npy", text}, {"y.npy", y}, {"x_lengths.npy", n}});
  CHECK(contains(of_tokens, "train: {inputs: x, targets: \"y\", lengths: x_lengths}\n"));
  CHECK(
      contains(of_tokens, "    - embedding: {num_embeddings: 27, features: 64}  # one more than the largest token\n"));
  CHECK(contains(of_tokens, "    - global_avg_pool                       # over the positions of each sequence\n"));
  CHECK_FALSE(contains(of_tokens, "normalize"));
  const std::string split = config({{"x_train.npy", waves},
                                    {"y_train.npy", y},
                                    {"n_train.npy", n},
                                    {"x_test.npy", waves},
                                    {"y_test.npy", y},
                                    {"n_test.npy", n}});
  CHECK(contains(split, "test: {inputs: x_test, targets: y_test, lengths: n_test}\n"));
  CHECK(contains(split, "channels: last                        # sequences [9,2] with 2 channels\n"));
  std::filesystem::remove(folder / "own.yaml");
  CHECK(contains(call({"init", "npz", folder / "a.npz", folder / "own.yaml"}).out,
                 "\ninputs: 'x_train', sequences f32[9,2]; lengths: 'n_train'; target: 'y_train': classification, 3 "
                 "classes; as numbers: loss: mean_squared_error with dense: 1\n"));
}

TEST_CASE("init npz says of each array that it leaves out why", "[app]") {
  const TemporaryFolder folder;
  std::vector<std::int64_t> tokens, positions, lengths, large, labels;
  std::vector<float> numbers;
  for (int i = 0; i < 40; ++i) {
    for (int t = 0; t < 9; ++t) tokens.push_back((i + t) % 27 - 1), positions.push_back((i + t) % 3);
    numbers.insert(numbers.end(), 9, static_cast<float>(i % 7));
    lengths.push_back(i % 10);
    large.push_back(i);
    labels.push_back(i % 3);
  }
  const std::string n = npy("<i8", "(40,)", raw(lengths)), y = npy("<i8", "(40,)", raw(labels));
  const std::string signals = npy("<f4", "(40, 9, 1)", raw(numbers)), rows = npy("<f4", "(40, 9)", raw(numbers));
  const auto told = [&](std::vector<std::pair<std::string, std::string>> arrays) {
    const std::string config = written(folder, "npz", folder.write("a.npz", archive(arrays)));
    CHECK_FALSE(contains(config, "lengths: "));
    return comments_in(config);
  };
  CHECK(told({{"x.npy", signals}, {"y.npy", y}, {"len.npy", npy("<i8", "(40,)", raw(large))}}) ==
        "The array 'len' [40] is left out: it has numbers that are not from 0 to the 9 positions of 'x' [40,9,1].\n");
  CHECK(told({{"x.npy", signals}, {"y.npy", y}, {"len.npy", npy("<f4", "(360,)", raw(numbers))}}) ==
        "The array 'len' [360] is left out: lengths are integers, one for each of the 40 examples of 'x' [40,9,1].\n");
  CHECK(told({{"x.npy", rows}, {"y.npy", y}, {"len.npy", n}}) ==
        "The array 'len' [40] is left out: sequences of numbers are (N, T, C), and 'x' [40,9] is not: in NumPy, "
        "x.reshape(N, T, -1).\n");
  CHECK(told({{"x.npy", npy("<i8", "(40, 9)", raw(tokens))}, {"y.npy", y}, {"len.npy", n}}) ==
        "The array 'len' [40] is left out: 'x' [40,9] has integers that are no tokens, which are from 0 to 65535.\n");
  CHECK(told({{"x.npy", signals}, {"y.npy", npy("<i8", "(40, 9)", raw(positions))}, {"len.npy", n}}) ==
        "The array 'len' [40] is left out: 'y' [40,9] has targets for each position, for which init writes no model of "
        "lengths.\n");
  CHECK(told({{"x.npy", npy("<i8", "(40,)", raw(large))}, {"y.npy", y}, {"len.npy", n}}) ==
        "The array 'len' [40] is left out: 'x' [40] has no sequences.\n");
  CHECK(told({{"x.npy", signals}, {"y.npy", y}, {"len_a.npy", n}, {"len_b.npy", n}}) ==
        "The array 'len_a' [40] is left out: which one has lengths is not clear: 'len_a', 'len_b'.\n"
        "The array 'len_b' [40] is left out: which one has lengths is not clear: 'len_a', 'len_b'.\n");
  CHECK(told({{"x_train.npy", signals},
              {"y_train.npy", y},
              {"n_train.npy", n},
              {"x_test.npy", signals},
              {"y_test.npy", y},
              {"z_val.npy", y}}) ==
        "The array 'z_val' [40] is left out: there are no inputs and targets of validation.\n"
        "The array 'n_train' [40] is left out: another split has no lengths.\n");
  // What is called otherwise may have lengths, but need not.
  CHECK(told({{"x.npy", signals}, {"y.npy", y}, {"ids.npy", npy("<i8", "(40,)", raw(large))}}) ==
        "The array 'ids' [40] is left out: it is neither inputs nor targets by its name.\n");
  const std::string other =
      written(folder, "npz", folder.write("a.npz", archive({{"x.npy", signals}, {"y.npy", y}, {"k.npy", n}})));
  CHECK(comments_in(other) ==
        "The array 'k' [40] is left out: if it has the lengths of the sequences, write train: {inputs: x, targets: y, "
        "lengths: k}, and layers that take lengths.\n");
}
