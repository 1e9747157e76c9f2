// The images of a split as examples, decoded in memory as far as they fit.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/augment/resize.h"
#include "core/base/shape.h"
#include "core/data/dataset.h"
#include "core/data/images/files.h"
#include "core/data/skipped.h"

namespace pmaptrain::data {

// The form that all images are converted to.
struct ImageForm {
  augment::ImageSize size;
  std::int64_t channels = 3;
  Shape shape() const { return {size.height, size.width, channels}; }
};

augment::ImageSize seen_size(const ImageHead& head);

// The bytes of decoded images of a split that stay in memory: half of the available memory, because the model needs
// some.
std::size_t room_for_images();

// Decodes and resizes all images with several threads, so that unreadable files are reported now. The first images, as
// many as fit in `room` bytes, stay in memory. The others are decoded again whenever they are read, which throws Error
// (data) if a file was modified in the meantime. Results do not depend on `room`. Files whose pixels cannot be read are
// removed and added to `skipped` if that is given; otherwise an Error (data) names the file.
std::shared_ptr<const Dataset> decode_images(ImageFiles files, const ImageForm& form, std::size_t room,
                                             std::vector<SkippedRow>* skipped);

// Decodes the files that `asked` names, and removes those whose pixels cannot be read and adds them to `skipped`.
void remove_damaged(ImageFiles& files, const std::function<bool(const ImageFile&)>& asked,
                    std::vector<SkippedRow>& skipped);

// A file of which only the head can be read must not determine the form of all images. If heads differ in size (which
// matters without `resize`) or in colour, removes damaged files among the groups that are small enough to be left out.
void remove_damaged_few(ImageFiles& files, bool resize, std::vector<SkippedRow>& skipped);

// The form of the training images: grey if all are, of `size`, or of their common size. `source` is the name of the
// source, for errors.
ImageForm form_of(const ImageFiles& train, const std::optional<std::vector<std::int64_t>>& size,
                  std::string_view source);

// Checks that the images of a split can be converted to the form of the training split.
void check_form(const ImageFiles& files, const ImageForm& form, bool resize, std::string_view source);

// decode_images(), with notes of what is changed: "test images: 3 of 20 are resized to 32x32".
std::shared_ptr<const Dataset> decode_and_note(ImageFiles files, const std::string& which, const ImageForm& form,
                                               std::size_t room, std::vector<SkippedRow>* skipped,
                                               std::vector<std::string>& notes);

// "train images: 12 GiB do not fit in 8 GiB of memory; 3000 of 9000 are decoded whenever they are read"; empty if all
// fit.
std::string note_of_room(const ImageFiles& files, const std::string& which, const ImageForm& form, std::size_t room);

}  // namespace pmaptrain::data
