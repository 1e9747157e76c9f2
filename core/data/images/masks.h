// Images with a class for each pixel: a folder of images, and one of masks with the same names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/opening.h"

namespace pmaptrain::data {

// A folder for each split, with the folders `images`, of PNG and JPEG files, and `masks`, of PNG files whose pixels are
// numbers of classes (label_png.h).
struct ImageMasks {
  std::string train;  // absolute paths
  std::optional<std::string> validation, test;
  std::optional<std::vector<std::int64_t>> size;  // height and width; none: that of the images, which all have one
  std::vector<ColumnName> class_names;            // of the numbers 0, 1, ...; empty: classes have numbers

  static Declaration<ImageMasks> declaration();
  // Images as those of ImageFolder; masks are resized to the same size by the nearest pixel, and stay in memory. Throws
  // Error (data), which names the file, for an image without a mask and the other way round, a mask of another size,
  // and a number that is neither a class nor the ignored label.
  Source open(const Opening& opening) const;
  std::string assignment(std::string_view split) const { return std::string(split) + "=DIR"; }
};

}  // namespace pmaptrain::data
