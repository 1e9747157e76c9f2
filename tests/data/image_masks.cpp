// Folders of images and of masks: what is read, and what is refused.
#include <filesystem>

#include "core/data/file.h"
#include "core/data/images/label_png.h"
#include "core/data/images/masks.h"
#include "core/input/open.h"
#include "tests/catch.h"
#include "tests/data/image_files.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

namespace fs = std::filesystem;

Png grey_mask(std::int64_t height, std::int64_t width, std::string pixels) {
  return {height, width, 1, std::move(pixels), height, width};
}

// A split of two images of 2x3 and 4x6 pixels.
struct Roads {
  TemporaryFolder folder;

  Roads() {
    write_in(folder, "train/images/a.png", flat_png(2, 3, 3, '\7').build());
    write_in(folder, "train/masks/a.png", grey_mask(2, 3, std::string("\0\1\1\0\0\1", 6)).build());
    write_in(folder, "train/images/b.png", flat_png(4, 6, 3, '\x20').build());
    write_in(folder, "train/masks/b.png", flat_png(4, 6, 1, '\1').build());
  }
  data::Source open(const std::function<void(data::ImageMasks&)>& change = {},
                    std::optional<std::int64_t> ignored = std::nullopt) const {
    data::ImageMasks masks{folder / "train", {}, {}, std::vector<std::int64_t>{2, 3}, {{"background"}, {"road"}}};
    if (change) change(masks);
    spec::DataSpec spec;
    spec.source = masks;
    spec.label_maps = true;
    spec.ignored_label = ignored;
    return input::open(spec, 0, 1);
  }
  std::string refused(const std::function<void(data::ImageMasks&)>& change = {}) const {
    std::string text = error_of([&] { open(change); });
    for (std::size_t at = 0; (at = text.find((folder.path().string() + "/"), at)) != std::string::npos;) {
      text.erase(at, folder.path().string().size() + 1);
    }
    return text;
  }
};

std::vector<std::int32_t> mask_labels(const data::Dataset& dataset, std::int64_t index) {
  std::vector<std::int32_t> labels(static_cast<std::size_t>(numel(dataset.target().shape)));
  dataset.read(index, nullptr, reinterpret_cast<std::byte*>(labels.data()));
  return labels;
}

}  // namespace

TEST_CASE("the pixels of masks are classes, which are resized to the nearest pixel", "[data]") {
  const Roads roads;
  const data::Source source = roads.open();
  const data::Dataset& train = *source.train;
  CHECK(train.size() == 2);
  CHECK(train.input().shape == Shape{2, 3, 3});
  CHECK(train.target().dtype == DType::i32);
  CHECK(train.target().shape == Shape{2, 3});
  CHECK(train.label_range() == std::pair<std::int64_t, std::int64_t>{0, 1});
  CHECK(mask_labels(train, 0) == std::vector<std::int32_t>{0, 1, 1, 0, 0, 1});
  CHECK(mask_labels(train, 1) == std::vector<std::int32_t>(6, 1));
  CHECK(train.file_of(1) == "b.png");
  CHECK(train.stored_size(1) == Shape{4, 6});
  CHECK(source.encoding.classes == std::vector<std::string>{"background", "road"});
  // A mask that is made smaller; without class_names, any number is a class.
  std::string pixels(24, '\0');
  pixels[7] = '\5';  // the pixel [1, 1], which stands for the first four
  write_in(roads.folder, "train/masks/b.png", grey_mask(4, 6, pixels).build());
  const data::Source numbers = roads.open([](data::ImageMasks& masks) { masks.class_names.clear(); });
  CHECK(mask_labels(*numbers.train, 1) == std::vector<std::int32_t>{5, 0, 0, 0, 0, 0});
  CHECK(numbers.encoding.labels == 6);
}

TEST_CASE("masks may have the number of pixels without a class", "[data]") {
  const Roads roads;
  write_in(roads.folder, "train/masks/b.png", flat_png(4, 6, 1, '\xff').build());
  CHECK(mask_labels(*roads.open({}, 255).train, 1) == std::vector<std::int32_t>(6, 255));
  CHECK(
      roads.refused() ==
      "the mask 'train/masks/b.png' has 255 at [0, 0] (row, column), but class_names has 2 classes: 0 to 1 | masks of "
      "0 and 255 become classes 0 and 1 by a division: in NumPy, mask // 255");
  write_in(roads.folder, "train/masks/b.png", flat_png(4, 6, 1, '\3').build());
  CHECK(
      roads.refused() ==
      "the mask 'train/masks/b.png' has 3 at [0, 0] (row, column), but class_names has 2 classes: 0 to 1 | if 3 marks "
      "what has no class, write loss: {softmax_cross_entropy: {ignore_label: 3}}; else name all classes in "
      "class_names");
}

TEST_CASE("images and masks that do not belong together are refused by their names", "[data]") {
  Roads roads;
  CHECK(roads.refused([](data::ImageMasks& masks) { masks.size.reset(); })
            .ends_with("choose the size that all are resized to, for example size: [32, 32] in image_masks"));
  write_in(roads.folder, "train/masks/b.png", flat_png(4, 5, 1, '\1').build());
  CHECK(roads.refused() ==
        "the mask 'train/masks/b.png' has 4x5 pixels (height x width), but its image has 4x6 | a mask has a pixel for "
        "each pixel of its image");
  write_in(roads.folder, "train/masks/b.png", flat_png(4, 6, 3, '\1').build());
  CHECK(
      roads.refused() ==
      "the mask 'train/masks/b.png' is in colour, but a pixel of a mask is the number of a class, as grey or as index "
      "into a palette | with Pillow, Image.fromarray(labels.astype(np.uint8)).save('mask.png') writes numbers "
      "[height, width]");
  fs::copy_file("tests/data/images/full.jpg", roads.folder.path() / "train/masks/b.png",
                fs::copy_options::overwrite_existing);
  CHECK(roads.refused() ==
        "the mask 'train/masks/b.png' is a JPEG image, whose pixels are not kept exactly | save masks as PNG files");
  fs::remove(roads.folder.path() / "train/masks/b.png");
  CHECK(roads.refused() ==
        "'train/images/b.png' has no mask: there is no 'train/masks/b.png' | a mask has the name of its image and is a "
        "PNG file: images/1.jpg, masks/1.png");
  fs::remove(roads.folder.path() / "train/images/b.png");
  write_in(roads.folder, "train/masks/c.png", flat_png(4, 6, 1, '\1').build());
  CHECK(roads.refused() ==
        "the mask 'train/masks/c.png' has no image in 'train/images' | a mask has the name of its image: images/1.jpg, "
        "masks/1.png");
  fs::remove(roads.folder.path() / "train/masks/c.png");
  write_in(roads.folder, "train/images/a.jpg", flat_png(2, 3, 3, '\7').build());
  CHECK(roads.refused() ==
        "'train/masks/a.png' is the mask of two images in 'train/images' | give the images different "
        "names; the ending does not count");
}

TEST_CASE("numbers in a PNG are those of its pixels, as grey of few bits and as indices into a palette", "[data]") {
  const auto numbers = [](const std::string& name) {
    const std::string path = "tests/data/images/" + name;
    return data::decode_labels(data::read_file(path), path);
  };
  const data::LabelImage bits = numbers("bits.png"), palette = numbers("palette.png");
  for (const std::uint8_t number : bits.labels) CHECK(number < 16);
  CHECK(std::ssize(palette.labels) == palette.height * palette.width);
  for (const char* const other : {"rgb.png", "grey16.png", "grey_alpha.png"}) CHECK_THROWS_AS(numbers(other), Error);
  // What is written is read back.
  const std::vector<std::uint8_t> labels{0, 1, 2, 3, 200, 0};
  const data::LabelImage read = data::decode_labels(data::encode_labels(labels, 2, 3), "a mask");
  CHECK(read.height == 2);
  CHECK(read.width == 3);
  CHECK(read.labels == labels);
}
