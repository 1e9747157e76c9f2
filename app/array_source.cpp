#include "app/array_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "app/data_layers.h"
#include "core/base/error.h"
#include "core/data/statistics.h"
#include "core/spec/print.h"

namespace pmaptrain::app {
namespace {

constexpr std::int32_t unlabelled = 255;

}  // namespace

ArraySource array_source(const std::string& path, const ShownPath& shown) {
  ArraySource source;
  const std::map<data::Split, input::ArrayNames> splits = input::find_arrays(path);
  const input::OtherArrays others = input::find_other_arrays(path, splits);
  source.text = {"    npz:\n      file: " + shown(path) + "\n", others.notes};
  source.tokens = others.tokens;
  for (const auto& [split, arrays] : splits) {
    std::string names = list_of({arrays.inputs, arrays.targets});
    if (const auto lengths = others.lengths.find(split); lengths != others.lengths.end()) {
      if (split == data::Split::train) source.lengths = lengths->second;
      names = fmt::format("{{inputs: {}, targets: {}, lengths: {}}}", spec::print_text(arrays.inputs),
                          spec::print_text(arrays.targets), spec::print_text(lengths->second));
    }
    if (split == data::Split::train) source.arrays = arrays;
    source.text.yaml += fmt::format("      {}: {}\n", data::name_of(split), names);
  }
  return source;
}

ImageSource image_source(const std::string& path, const ShownPath& shown) {
  const input::ImageFolders images = input::find_images(path);
  ImageSource source{{}, images.have_masks};
  source.text.yaml = images.have_masks ? "    image_masks:\n" : "    image_folder:\n";
  for (const auto& [split, folder] : images.folders) {
    source.text.yaml += fmt::format("      {}: {}\n", data::name_of(split), shown(folder));
  }
  if (images.size) {
    source.text.yaml += commented(fmt::format("      size: [{}, {}]", images.size->at(0), images.size->at(1)),
                                  images.have_masks ? "height and width that images and masks are resized to"
                                                    : "height and width that all images are resized to");
  }
  return source;
}

MaskClasses classes_of_masks(const data::Source& source, const std::string& path) {
  MaskClasses found;
  std::int32_t most = -1;
  for (const auto& dataset : {source.train, source.validation, source.test}) {
    if (!dataset) continue;
    for (const auto& [label, count] : data::count_labels(*dataset)) {
      found.has_255 = found.has_255 || label == unlabelled;
      if (label != unlabelled) most = std::max(most, label);
    }
  }
  found.count = most + 1;
  if (found.count <= 1 && found.has_255) {
    fail_data(
        fmt::format("the masks of '{}' have no numbers but 0 and 255, and 255 is no class: it marks pixels that do "
                    "not count",
                    path),
        "masks of 0 and 255 become classes 0 and 1 by a division: in NumPy, mask // 255");
  }
  if (found.count <= 1) {
    fail_data(fmt::format("the masks of '{}' have no number but 0, so there is nothing to learn", path),
              "pixels of a mask are numbers of classes: 0, 1, ...");
  }
  if (found.count > most_classes_of_pixels) {
    fail_data(
        fmt::format("the masks of '{}' have numbers up to {}, which would be {} classes", path, most, found.count),
        fmt::format("pixels of a mask are numbers of classes, from 0 to at most {}, or 255 for none",
                    most_classes_of_pixels - 1));
  }
  return found;
}

std::string names_of_masks(std::int64_t classes) {
  std::vector<std::string> names;
  for (std::int64_t label = 0; label < classes; ++label) names.push_back(fmt::format("class_{}", label));
  return commented("      class_names: " + list_of(names), "of the numbers in masks: call them by their names");
}

}  // namespace pmaptrain::app
