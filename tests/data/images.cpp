// Images are decoded and resized as Pillow does it (make_images.py), and folders of them are a dataset.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "core/augment/resize.h"
#include "core/data/arrays/array.h"
#include "core/data/images/folder.h"
#include "core/data/images/image.h"
#include "core/input/open.h"
#include "tests/catch.h"
#include "tests/data/image_files.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

namespace fs = std::filesystem;

const std::string image_folder = "tests/data/images";

struct Decoded {
  data::ImageHead head;
  std::int64_t channels = 0;
  std::vector<std::byte> pixels;
};

Decoded decode(const std::string& path) {
  const std::vector<std::byte> file = data::read_file(path);
  Decoded decoded;
  decoded.head = data::read_image_head(file, path);
  decoded.channels = decoded.head.grey ? 1 : 3;
  decoded.pixels.resize(static_cast<std::size_t>(decoded.head.height * decoded.head.width * decoded.channels));
  data::decode_image(file, path, decoded.head, decoded.channels, decoded.pixels);
  return decoded;
}

// The largest difference of two images, of which the other is an array of expected.npz.
int difference(const std::vector<std::byte>& pixels, const data::Array& expected) {
  REQUIRE(pixels.size() == expected.bytes.size());
  int most = 0;
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    most = std::max(most, std::abs(std::to_integer<int>(pixels[i]) - std::to_integer<int>(expected.bytes.data()[i])));
  }
  return most;
}

data::Array pillow_array(const std::string& name) { return data::read_npz(image_folder + "/expected.npz", name); }

data::Source open_folder(const data::ImageFolder& folder) {
  return data::open_image_folder(
      folder, [](data::Split) { return true; }, nullptr);
}

// The bytes of example `index`.
std::string pixels_of(const data::Dataset& dataset, std::int64_t index) {
  std::string pixels(dataset.input().bytes(), '\0');
  std::int32_t label = 0;
  dataset.read(index, reinterpret_cast<std::byte*>(pixels.data()), reinterpret_cast<std::byte*>(&label));
  return pixels;
}
std::int32_t label_of(const data::Dataset& dataset, std::int64_t index) {
  std::int32_t label = 0;
  dataset.read(index, nullptr, reinterpret_cast<std::byte*>(&label));
  return label;
}

}  // namespace

TEST_CASE("images of every kind decode to the pixels that Pillow reads", "[data]") {
  std::set<std::string> kinds;
  for (const fs::directory_entry& entry : fs::directory_iterator(image_folder)) {
    const std::string name = entry.path().filename().string();
    if (name == "expected.npz") continue;
    INFO(name);
    kinds.insert(name);
    const Decoded decoded = decode(entry.path().string());
    const data::Array array = pillow_array(name);
    CHECK(array.shape == Shape{decoded.head.seen_height(), decoded.head.seen_width(), decoded.channels});
    // PNG is exact. For JPEG, Pillow may have another version of the library; CMYK is rounded in another way.
    CHECK(difference(decoded.pixels, array) <= (name.ends_with(".png") ? 0 : name == "cmyk.jpg" ? 2 : 1));
  }
  CHECK(kinds.size() == 23);
}

TEST_CASE("images are resized to the pixels of Pillow's BILINEAR, smaller and larger", "[data]") {
  for (const std::string name : {"rgb.png", "grey.png"}) {
    const Decoded from = decode(image_folder + "/" + name);
    for (const augment::ImageSize size : {augment::ImageSize{5, 7}, {31, 40}, {12, 9}, {1, 1}}) {
      INFO(name << " to " << size.height << "x" << size.width);
      std::vector<std::byte> to(static_cast<std::size_t>(size.height * size.width * from.channels));
      augment::resize_image(from.pixels, {from.head.height, from.head.width}, to, size, from.channels);
      const data::Array array =
          pillow_array(name + "." + std::to_string(size.height) + "x" + std::to_string(size.width));
      CHECK(difference(to, array) <= 1);
    }
  }
}

TEST_CASE("an image keeps a direction whose size does not change, and all pixels of its own size", "[data]") {
  const Decoded from = decode(image_folder + "/rgb.png");
  const augment::ImageSize size{from.head.height, from.head.width};
  std::vector<std::byte> same(from.pixels.size());
  augment::resize_image(from.pixels, size, same, size, 3);
  CHECK(same == from.pixels);
  // Rows that are all equal stay so whatever the height becomes.
  std::vector<std::byte> rows(static_cast<std::size_t>(4 * size.width * 3));
  for (std::size_t y = 0; y < 4; ++y) {
    std::copy_n(from.pixels.begin(), size.width * 3, rows.begin() + static_cast<std::ptrdiff_t>(y) * size.width * 3);
  }
  std::vector<std::byte> taller(static_cast<std::size_t>(9 * size.width * 3));
  augment::resize_image(rows, {4, size.width}, taller, {9, size.width}, 3);
  for (std::size_t y = 0; y < 9; ++y) {
    CHECK(std::equal(rows.begin(), rows.begin() + size.width * 3,
                     taller.begin() + static_cast<std::ptrdiff_t>(y) * size.width * 3));
  }
}

TEST_CASE("a folder of images has its classes by name and its examples by class and name", "[data]") {
  const TemporaryFolder folder;
  write_in(folder, "train/dog/b.png", flat_png(2, 3, 1, 10).build());
  write_in(folder, "train/dog/a.png", flat_png(2, 3, 1, 20).build());
  write_in(folder, "train/cat/z.png", flat_png(2, 3, 1, 30).build());
  write_in(folder, "train/cat/.hidden", "no image");
  write_in(folder, "train/.DS_Store", "no image");
  write_in(folder, "test/cat/1.png", flat_png(2, 3, 1, 40).build());
  fs::create_directories(folder.path() / "test/dog");
  const data::Source source = open_folder({folder / "train", {}, folder / "test", {}});
  CHECK(source.encoding.classes == std::vector<std::string>{"cat", "dog"});
  CHECK(source.encoding.image == std::vector<std::int64_t>{2, 3, 1});
  REQUIRE(source.train->size() == 3);
  CHECK(source.train->input().dtype == DType::u8);
  CHECK(source.train->input().shape == Shape{2, 3, 1});
  const std::vector<std::string> files = {"cat/z.png", "dog/a.png", "dog/b.png"};
  const std::vector<char> values = {30, 20, 10};
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto at = static_cast<std::size_t>(i);
    CHECK(source.train->file_of(i) == files[at]);
    CHECK(pixels_of(*source.train, i) == std::string(6, values[at]));
    CHECK(label_of(*source.train, i) == (i == 0 ? 0 : 1));
  }
  CHECK(source.test->size() == 1);
  CHECK(source.test->label_range() == std::pair<std::int64_t, std::int64_t>{0, 1});
  CHECK(source.notes.empty());
}

TEST_CASE("a folder with one image in colour has three channels, and grey ones become colour", "[data]") {
  const TemporaryFolder folder;
  write_in(folder, "train/a/1.png", flat_png(2, 2, 1, 7).build());
  write_in(folder, "train/a/2.png", Png{2, 2, 3, "abcdefghijkl", 2, 2}.build());
  write_in(folder, "test/a/1.png", flat_png(2, 2, 1, 9).build());
  const data::Source source = open_folder({folder / "train", {}, folder / "test", {}});
  CHECK(source.train->input().shape == Shape{2, 2, 3});
  CHECK(pixels_of(*source.train, 0) == std::string(12, 7));
  CHECK(pixels_of(*source.train, 1) == "abcdefghijkl");
  CHECK(pixels_of(*source.test, 0) == std::string(12, 9));
  CHECK(source.notes == std::vector<std::string>{"train images: 1 of 2 are grey and become colour",
                                                 "test images: 1 of 1 are grey and become colour"});
}

TEST_CASE("with a size all images are resized, and a note says how many", "[data]") {
  const TemporaryFolder folder;
  write_in(folder, "train/a/1.png", flat_png(4, 4, 1, 50).build());
  write_in(folder, "train/b/2.png", flat_png(9, 5, 1, 60).build());
  const data::Source source = open_folder({folder / "train", {}, {}, std::vector<std::int64_t>{4, 4}});
  CHECK(pixels_of(*source.train, 1) == std::string(16, 60));
  CHECK(source.notes == std::vector<std::string>{"train images: 1 of 2 are resized to 4x4"});
}

TEST_CASE("a split is read by the encoding of a checkpoint, without the training images", "[data]") {
  const TemporaryFolder folder;
  write_in(folder, "test/cat/1.png", flat_png(2, 2, 1, 5).build());
  fs::create_directories(folder.path() / "test/dog");
  data::Encoding known;
  known.classes = {"cat", "dog"};
  known.image = {2, 2, 3};
  const data::Source source = data::open_image_folder(
      {folder / "missing", {}, folder / "test", {}}, [](data::Split split) { return split == data::Split::test; },
      &known);
  CHECK(source.train == nullptr);
  CHECK(source.test->input().shape == Shape{2, 2, 3});
  CHECK(source.encoding == known);
}

TEST_CASE("images of other classes than a checkpoint's are refused", "[data]") {
  const TemporaryFolder folder;
  write_in(folder, "test/cat/1.png", flat_png(2, 2, 1, 5).build());
  fs::create_directories(folder.path() / "test/dog");
  spec::DataSpec data;
  data.source = data::ImageFolder{folder / "test", {}, folder / "test", {}};
  data::Encoding known;
  const auto refusal = [&] { return error_of([&] { input::open(data, 0, 1, data::Split::test, &known); }); };
  CHECK(refusal() == "accepted");
  known.classes = {"cat", "dog"};
  CHECK(refusal() == "accepted");
  known.classes = {"dog", "cat"};  // by a source that is no folder of images, and has an order of its own
  CHECK(refusal() ==
        "the classes of the data, cat, dog, are not those of the checkpoint, dog, cat | use data with the classes that "
        "the run was trained on, in their order");
}

TEST_CASE("the resolved size of many images does not depend on how they are read", "[data]") {
  // Many threads or one: each image has memory of its own.
  const TemporaryFolder folder;
  for (int i = 0; i < 60; ++i) {
    write_in(folder, "train/a/" + std::to_string(100 + i) + ".png", flat_png(3, 3, 1, static_cast<char>(i)).build());
  }
  const data::Source source = open_folder({folder / "train", {}, {}, {}});
  for (std::int64_t i = 0; i < 60; ++i) CHECK(pixels_of(*source.train, i) == std::string(9, static_cast<char>(i)));
}

TEST_CASE("Fashion-MNIST as folders of PNG files trains to the bits of its arrays", "[data]") {
  const std::string set = "/usr/share/datasets/fashion-mnist/t10k-";
  if (!fs::exists(set + "images-idx3-ubyte.gz")) {
    WARN("dataset-fashion-mnist is not installed");
    return;
  }
  const data::Array pixels = data::read_idx(set + "images-idx3-ubyte.gz");
  const data::Array labels = data::read_idx(set + "labels-idx1-ubyte.gz");
  constexpr std::int64_t examples = 300, bytes = 28 * 28;
  // The order of the folders: by class, then by name.
  std::vector<std::int64_t> order(examples);
  for (std::int64_t i = 0; i < examples; ++i) order[static_cast<std::size_t>(i)] = i;
  const auto label = [&](std::int64_t i) { return std::to_integer<int>(labels.bytes.data()[i]); };
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return label(a) < label(b); });
  const TemporaryFolder folder;
  std::string all_pixels, all_labels;
  for (const std::int64_t i : order) {
    const std::string image(reinterpret_cast<const char*>(pixels.bytes.data()) + i * bytes, bytes);
    const std::string name = std::to_string(label(i)) + "/" + std::to_string(10000 + i) + ".png";
    write_in(folder, "train/" + name, Png{28, 28, 1, image, 28, 28}.build());
    all_pixels += image;
    all_labels += static_cast<char>(label(i));
  }
  folder.write("images", idx(8, {examples, 28, 28}, all_pixels));
  folder.write("labels", idx(8, {examples}, all_labels));
  const std::string config = R"(
mesh: {axes: {devices: 2}}
data:
  source: {image_folder: {train: )" +
                             (folder / "train") + R"(}}
  batch_size: 30
  validation: 0.1
  augment: [{random_crop: {padding: 2}}, random_flip, {cutout: {size: 6}}]
model: {layers: [{conv: {features: 4, kernel_size: [3, 3]}}, relu, flatten, {dense: 10}]}
loss: softmax_cross_entropy
metrics: [accuracy]
optimizer: {adam: {}, learning_rate: 0.01}
train: {duration: 2 epochs}
)";
  const Trained from_folder = train_setup(setup_of_text(config));
  const Trained from_arrays = train_setup(setup_of_text(
      config, {"data.source={idx: {train: [" + (folder / "images") + ", " + (folder / "labels") + "]}}"}));
  CHECK(from_folder.same_bits(from_arrays));
}
