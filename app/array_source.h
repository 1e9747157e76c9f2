// data.source of an archive of arrays, and of folders of images, in a config that `init` writes.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "app/table_source.h"
#include "core/data/dataset.h"
#include "core/data/opening.h"
#include "core/input/inspect.h"

namespace pmaptrain::app {

// A path as text of YAML.
using ShownPath = std::function<std::string(const std::string& path)>;

struct ArraySource {
  SourceText text;
  input::ArrayNames arrays = {};  // of the training split
  std::string lengths = {};       // of the same; empty: sequences have one length
  std::int64_t tokens = 0;        // of sequences of different lengths of tokens: how many different tokens there are
};
ArraySource array_source(const std::string& path, const ShownPath& shown);

struct ImageSource {
  SourceText text;
  bool have_masks = false;
};
ImageSource image_source(const std::string& path, const ShownPath& shown);

// The classes in the masks of all splits, 0 to the largest but 255. Throws Error (data) where the numbers are no
// classes: 0 and 255 alone, or too many.
struct MaskClasses {
  std::int64_t count = 0;
  bool has_255 = false;  // which marks pixels without a class
};
MaskClasses classes_of_masks(const data::Source& source, const std::string& path);
// The line that names them.
std::string names_of_masks(std::int64_t classes);

}  // namespace pmaptrain::app
