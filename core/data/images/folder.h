// Folders of images, one folder for each class.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/opening.h"
#include "core/data/skipped.h"

namespace pmaptrain::data {

// A folder for each split, in which each class has a folder of PNG and JPEG files.
struct ImageFolder {
  std::string train;                              // absolute paths
  std::optional<std::string> validation, test;    // of the same classes
  std::optional<std::vector<std::int64_t>> size;  // height and width; none: that of the images, which all have one
  OnError on_error = OnError::error;

  static Declaration<ImageFolder> declaration();
  Source open(const Opening& opening) const;
  std::string assignment(std::string_view split) const { return std::string(split) + "=DIR"; }
};

// Opens the splits that are wanted: lists the folders, reads the heads of all files, then decodes and resizes all
// images by several threads (image_dataset.h). Files that a run has left out are left out again. `room` is how many
// bytes of a split stay in memory, by default as many as room_for_images() says. The training split decides the classes
// (which are Encoding::classes), the channels and, without `size`, the size; with `known` it is not needed for others.
// Throws Error (data), which names the file or folder.
Source open_image_folder(const ImageFolder& folder, const std::function<bool(Split)>& wants, const Encoding* known,
                         const Skipped& left_out = {}, std::optional<std::size_t> room = std::nullopt);

// Opens the images at `path` (list_unclassed_images) without targets, for a model that was trained on u8 images of
// `shape`, [height, width, 1 or 3]. Images of another size are resized if `resize` says that training images were, else
// refused. Unreadable files are added to `skipped`, in order, if that is given.
std::shared_ptr<const Dataset> open_unclassed_images(const std::string& path, const Shape& shape, bool resize,
                                                     std::vector<std::string>& notes, std::vector<SkippedRow>* skipped);

}  // namespace pmaptrain::data
