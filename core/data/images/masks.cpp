#include "core/data/images/masks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/file.h"
#include "core/data/images/dataset.h"
#include "core/data/images/files.h"
#include "core/data/images/label_png.h"
#include "core/data/parallel.h"

namespace pmaptrain::data {
namespace {

constexpr std::string_view source_name = "image_masks";

// "a/1.jpg" -> "a/1.png"
std::string mask_of(const std::string& image) {
  return std::filesystem::path(image).replace_extension(".png").string();
}

// The images of a split and its masks, in the same order.
struct Pairs {
  ImageFiles images;
  std::string masks;  // the folder
  std::string path_of_mask(const ImageFile& image) const { return masks + "/" + mask_of(image.name); }
};

Pairs list_pairs(const std::string& folder) {
  Pairs pairs{list_unclassed_images(folder + "/images"), folder + "/masks"};
  const ImageFiles masks = list_unclassed_images(pairs.masks);
  std::set<std::string> there, wanted;
  for (const ImageFile& mask : masks.files) there.insert(mask.name);
  for (const ImageFile& image : pairs.images.files) {
    const std::string name = mask_of(image.name);
    if (!wanted.insert(name).second) {
      fail_data(fmt::format("'{}' is the mask of two images in '{}'", pairs.path_of_mask(image), pairs.images.folder),
                "give the images different names; the ending does not count");
    }
    if (there.contains(name)) continue;
    fail_data(fmt::format("'{}' has no mask: there is no '{}'", pairs.images.path_of(image), pairs.path_of_mask(image)),
              "a mask has the name of its image and is a PNG file: images/1.jpg, masks/1.png");
  }
  for (const std::string& name : there) {
    if (wanted.contains(name)) continue;
    fail_data(fmt::format("the mask '{}/{}' has no image in '{}'", pairs.masks, name, pairs.images.folder),
              "a mask has the name of its image: images/1.jpg, masks/1.png");
  }
  return pairs;
}

// Which numbers masks may have.
struct Classes {
  std::int64_t count = 0;  // 0: any
  std::optional<std::int64_t> ignored;
  bool has(std::uint8_t label) const { return count == 0 || label < count || label == ignored; }
};

[[noreturn]] void fail_label(const std::string& path, const LabelImage& mask, std::size_t at, const Classes& classes) {
  const std::uint8_t label = mask.labels[at];
  const auto pixel = static_cast<std::int64_t>(at);
  const bool is_black_and_white =
      std::all_of(mask.labels.begin(), mask.labels.end(), [](std::uint8_t one) { return one == 0 || one == 255; });
  fail_data(fmt::format("the mask '{}' has {} at [{}, {}] (row, column), but class_names has {}: 0 to {}", path, label,
                        pixel / mask.width, pixel % mask.width,
                        classes.count == 1 ? "1 class" : fmt::format("{} classes", classes.count), classes.count - 1),
            is_black_and_white && classes.count == 2
                ? "masks of 0 and 255 become classes 0 and 1 by a division: in NumPy, mask // 255"
                : fmt::format("if {0} marks what has no class, write loss: {{softmax_cross_entropy: {{ignore_label: "
                              "{0}}}}}; else name all classes in class_names",
                              label));
}

// Reads a mask as [height, width] of `size`.
void read_mask(const std::string& path, const ImageHead& image, augment::ImageSize size, const Classes& classes,
               std::span<std::byte> out) {
  const std::vector<std::byte> file = read_file(path);
  const ImageHead head = read_image_head(file, path);
  if (head.format != ImageFormat::png) {
    fail_data(fmt::format("the mask '{}' is a JPEG image, whose pixels are not kept exactly", path),
              "save masks as PNG files");
  }
  check_image_bytes(head, file.size(), path);
  const LabelImage mask = decode_labels(file, path);
  if (mask.height != image.seen_height() || mask.width != image.seen_width()) {
    fail_data(fmt::format("the mask '{}' has {}x{} pixels (height x width), but its image has {}x{}", path, mask.height,
                          mask.width, image.seen_height(), image.seen_width()),
              "a mask has a pixel for each pixel of its image");
  }
  for (std::size_t i = 0; i < mask.labels.size(); ++i) {
    if (!classes.has(mask.labels[i])) fail_label(path, mask, i, classes);
  }
  augment::resize_nearest(std::as_bytes(std::span(mask.labels)), {mask.height, mask.width}, out, size, 1);
}

class MaskedImages : public Dataset {
 public:
  MaskedImages(std::shared_ptr<const Dataset> images, Memory masks, const std::string& folder)
      : images_(std::move(images)),
        masks_(std::move(masks)),
        target_{DType::i32, {images_->input().shape[0], images_->input().shape[1]}, fmt::format("'{}'", folder)},
        pixels_(static_cast<std::size_t>(numel(target_.shape))) {
    const auto [low, high] = std::minmax_element(masks_.view.begin(), masks_.view.end());
    range_ = {std::to_integer<std::int64_t>(*low), std::to_integer<std::int64_t>(*high)};
  }

  std::int64_t size() const override { return images_->size(); }
  Field input() const override { return images_->input(); }
  Field target() const override { return target_; }
  bool is_costly() const override { return images_->is_costly(); }
  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    if (input != nullptr) images_->read(index, input, nullptr);
    const std::byte* label = masks_.view.data() + static_cast<std::size_t>(index) * pixels_;
    for (std::size_t i = 0; i < pixels_; ++i, ++label, target += sizeof(std::int32_t)) {
      const auto number = std::to_integer<std::int32_t>(*label);
      std::memcpy(target, &number, sizeof number);
    }
  }
  std::string file_of(std::int64_t index) const override { return images_->file_of(index); }
  Shape stored_size(std::int64_t index) const override { return images_->stored_size(index); }
  std::int64_t file_size(std::int64_t index) const override { return images_->file_size(index); }
  std::vector<std::byte> file_bytes(std::int64_t index) const override { return images_->file_bytes(index); }
  void check_intact() const override { images_->check_intact(); }
  void check_unchanged() const override { images_->check_unchanged(); }
  std::optional<std::pair<std::int64_t, std::int64_t>> label_range() const override { return range_; }

 private:
  std::shared_ptr<const Dataset> images_;
  Memory masks_;  // [examples, height, width] of bytes
  Field target_;
  std::size_t pixels_;
  std::pair<std::int64_t, std::int64_t> range_;
};

std::shared_ptr<const Dataset> open_pairs(Pairs pairs, Split split, const ImageForm& form, const Classes& classes,
                                          Notes& notes) {
  const auto each = static_cast<std::size_t>(form.size.height * form.size.width);
  Memory masks = allocate(pairs.images.files.size() * each, fmt::format("'{}'", pairs.masks));
  for_each_item(std::ssize(pairs.images.files), [&](std::int64_t item) {
    const auto i = static_cast<std::size_t>(item);
    const ImageFile& image = pairs.images.files[i];
    read_mask(pairs.path_of_mask(image), image.head, form.size, classes, masks.view.subspan(i * each, each));
  });
  std::shared_ptr<const Dataset> images = decode_and_note(
      std::move(pairs.images), fmt::format("{} images", name_of(split)), form, room_for_images(), nullptr, notes);
  return std::make_shared<MaskedImages>(std::move(images), std::move(masks), pairs.masks);
}

}  // namespace

Declaration<ImageMasks> ImageMasks::declaration() {
  return declare::kind<ImageMasks>(
      {.path = "image_masks",
       .meaning =
           "Images with a class for each pixel, for semantic segmentation: the folder of a split has the folders "
           "images, of PNG and JPEG files, and masks, of PNG files with the same names whose pixels are numbers "
           "of classes, as grey or as indices into a palette. Images as in image_folder.",
       .example = "source: {image_masks: {train: roads/train, test: roads/test, size: [128, 128], class_names: "
                  "[background, road]}}"},
      field(&ImageMasks::train, {.path = "train",
                                 .is_path = true,
                                 .need = Need::required,
                                 .meaning = "The folder with the folders images and masks of the training split.",
                                 .example = "train: roads/train"}),
      field(&ImageMasks::validation, {.path = "validation",
                                      .is_path = true,
                                      .meaning = "As train, for the validation split.",
                                      .example = "validation: roads/validation"}),
      field(
          &ImageMasks::test,
          {.path = "test", .is_path = true, .meaning = "As train, for the test split.", .example = "test: roads/test"}),
      field(
          &ImageMasks::size,
          {.path = "size",
           .low = 1,
           .high = 65535,
           .length = 2,
           .meaning = "The height and the width that images are resized to, bilinear, and masks, to the nearest pixel. "
                      "The ratio of the sides is not kept. predict writes masks of the size of its images.",
           .example = "size: [128, 128]",
           .fallback_text = "the size of the images, which must be the same for all"}),
      field(&ImageMasks::class_names, {.path = "class_names",
                                       .meaning = "The names of the classes 0, 1, ... Other numbers in masks are an "
                                                  "error, but for the loss's ignore_label.",
                                       .example = "class_names: [background, road]",
                                       .fallback_text = "classes have numbers"}));
}

Source ImageMasks::open(const Opening& opening) const {
  Source source;
  std::map<Split, Pairs> splits;
  const Encoding* const known = opening.known != nullptr && !opening.known->image.empty() ? opening.known : nullptr;
  for (const auto& [split, path] : given(train, validation, test)) {
    if (!opening.wants(split) && (known != nullptr || split != Split::train)) continue;
    splits.emplace(split, about_file(path, [&, &path = path] {
                     Pairs pairs = list_pairs(path);
                     read_heads(pairs.images);
                     return pairs;
                   }));
  }
  const ImageForm form = known != nullptr ? ImageForm{{known->image[0], known->image[1]}, known->image[2]}
                                          : form_of(splits.at(Split::train).images, size, source_name);
  source.encoding.image = form.shape();
  for (const ColumnName& name : class_names) source.encoding.classes.push_back(name.text);
  const Classes classes{std::ssize(class_names), opening.ignored_label};
  for (auto& [split, pairs] : splits) {
    if (!opening.wants(split)) continue;
    check_form(pairs.images, form, size.has_value(), source_name);
    source.of(split) = about_file(given(train, validation, test).at(split), [&, &pairs = pairs, &split = split] {
      return open_pairs(std::move(pairs), split, form, classes, source.notes);
    });
  }
  return source;
}

}  // namespace pmaptrain::data
