// The files of a folder of images.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/images/image.h"
#include "core/data/skipped.h"

namespace pmaptrain::data {

struct ImageFile {
  std::string name;  // relative to the folder of the split: "cat/1.png"
  std::int32_t label = 0;
  ImageHead head = {};
  std::int64_t number = 0;  // among all that were listed
};

// The folder of a split: one folder for each class.
struct ImageFiles {
  std::string folder;
  std::vector<std::string> classes;  // sorted by bytes
  std::vector<ImageFile> files;      // by class, then by name
  std::string path_of(const ImageFile& file) const { return folder + "/" + file.name; }
};

// Lists the files of a split, without opening them. Names that begin with a dot, Thumbs.db and desktop.ini are ignored;
// symbolic links are followed. Throws Error (data) for a folder without classes, for files next to the folders of
// classes, for folders inside these, and for names of classes that are not UTF-8. read_heads() checks whether files can
// be read.
ImageFiles list_image_files(const std::string& folder);

// The images at `path` without classes: a file alone, or the files of a folder and of the folders in it, sorted by
// name. Throws Error (data) for a folder two levels down.
ImageFiles list_unclassed_images(const std::string& path);

// Reads the heads of all files. Those that cannot be read are removed and added to `skipped`; without it the first
// one's Error is thrown.
void read_heads(ImageFiles& files, std::vector<SkippedRow>* skipped = nullptr);

// Removes the files that a run has left out, by their names, and adds them to `skipped`, also those that are gone.
void leave_out(ImageFiles& files, const std::vector<SkippedRow>& left_out, std::vector<SkippedRow>& skipped);

// Removes the files that have a reason; `reasons` are by file, empty for the others.
void remove_unread(ImageFiles& files, const std::vector<std::string>& reasons, std::vector<SkippedRow>& skipped);

}  // namespace pmaptrain::data
