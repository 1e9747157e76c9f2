// The images of a split as examples, decoded in memory as far as they fit.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/shape.h"
#include "core/data/dataset.h"
#include "core/data/images/files.h"
#include "core/data/images/resize.h"
#include "core/data/skipped.h"

namespace pmaptrain::data {

// What all images become.
struct ImageForm {
  ImageSize size;
  std::int64_t channels = 3;
  Shape shape() const { return {size.height, size.width, channels}; }
};

ImageSize seen_size(const ImageHead& head);

// How many bytes of decoded images of a split stay in memory: half of what is available now. The model needs some, too.
std::size_t room_for_images();

// Decodes and resizes all images by several threads, so that a file that cannot be read is told here. The first ones,
// as many as fit in `room` bytes, stay in memory; the others are decoded again whenever they are read, which throws
// Error (data) if a file was modified in the meantime. Which these are changes no bit. Removes files whose pixels
// cannot be read and adds them to `skipped`, where that is given; else throws Error (data), which names the file.
std::shared_ptr<const Dataset> decode_images(ImageFiles files, const ImageForm& form, std::size_t room,
                                             std::vector<SkippedRow>* skipped);

// Decodes the files that `asked` names, and removes those whose pixels cannot be read and adds them to `skipped`.
void remove_damaged(ImageFiles& files, const std::function<bool(const ImageFile&)>& asked,
                    std::vector<SkippedRow>& skipped);

// A file whose head alone can be read must not decide what all images become. Where heads differ in size (which counts
// without `resize`) or in colour, removes the damaged ones among those of so few files that all may be left out.
void remove_damaged_few(ImageFiles& files, bool resize, std::vector<SkippedRow>& skipped);

// "train images: 12 GiB do not fit in 8 GiB of memory; 3000 of 9000 are decoded whenever they are read"; empty if all
// fit.
std::string note_of_room(const ImageFiles& files, const std::string& which, const ImageForm& form, std::size_t room);

}  // namespace pmaptrain::data
