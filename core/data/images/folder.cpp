#include "core/data/images/folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "core/augment/resize.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/file.h"
#include "core/data/images/dataset.h"
#include "core/data/images/files.h"

namespace pmaptrain::data {
namespace {

std::string to_text(const augment::ImageSize& size) { return fmt::format("{}x{}", size.height, size.width); }

// Without `size`, all images must have the size of the first one. `source` is the name of the source.
augment::ImageSize common_size(const ImageFiles& files, std::string_view source) {
  const ImageFile& first = files.files.front();
  for (const ImageFile& file : files.files) {
    if (seen_size(file.head) == seen_size(first.head)) continue;
    fail_data(fmt::format("the images differ in size: '{}' has {}x{} pixels (height x width), '{}' has {}x{}",
                          files.path_of(first), first.head.seen_height(), first.head.seen_width(), files.path_of(file),
                          file.head.seen_height(), file.head.seen_width()),
              fmt::format("choose the size that all are resized to, for example size: [32, 32] in {}", source));
  }
  return seen_size(first.head);
}

}  // namespace

ImageForm form_of(const ImageFiles& train, const std::optional<std::vector<std::int64_t>>& size,
                  std::string_view source) {
  const bool grey =
      std::all_of(train.files.begin(), train.files.end(), [](const auto& file) { return file.head.grey; });
  ImageForm form{{}, grey ? 1 : 3};
  form.size = size ? augment::ImageSize{(*size)[0], (*size)[1]} : common_size(train, source);
  return form;
}

namespace {

// The classes of a split without a file.
std::vector<std::string> empty_classes(const ImageFiles& files) {
  std::vector<bool> has_file(files.classes.size());
  for (const ImageFile& file : files.files) has_file[static_cast<std::size_t>(file.label)] = true;
  std::vector<std::string> empty;
  for (std::size_t label = 0; label < has_file.size(); ++label) {
    if (!has_file[label]) empty.push_back(files.classes[label]);
  }
  return empty;
}

// `empty_folders`: those of classes without training images.
void check_classes(const ImageFiles& files, Split split, const std::vector<std::string>& classes,
                   const std::vector<std::string>& empty_folders) {
  const auto missing = [](const std::vector<std::string>& all, const std::vector<std::string>& some) {
    std::vector<std::string> found;
    std::set_difference(all.begin(), all.end(), some.begin(), some.end(), std::back_inserter(found));
    return found;
  };
  if (const auto found = missing(files.classes, classes); !found.empty()) {
    const std::vector<std::string> empty = empty_classes(files);
    const bool is_empty = std::find(empty.begin(), empty.end(), found.front()) != empty.end();
    fail_data(fmt::format("the class '{}' of the {} split, in '{}', is no class of the training split{}", found.front(),
                          name_of(split), files.folder, is_empty ? ", and its folder has no images" : ""),
              (is_empty ? "remove the empty folder; " : "") +
                  fmt::format("the classes are the folders of the training split: {}", join(classes, ", ")));
  }
  if (const auto found = missing(classes, files.classes); !found.empty()) {
    const auto empty = std::find_if(empty_folders.begin(), empty_folders.end(),
                                    [&](const std::string& folder) { return folder.ends_with('/' + found.front()); });
    if (empty != empty_folders.end()) {
      fail_data(
          fmt::format("'{}' has no images, so nothing trains the class '{}', and the {} split has no folder for it",
                      *empty, found.front(), name_of(split)),
          "remove the empty folder, or add images of the class to both splits");
    }
    fail_data(fmt::format("the {} split has no folder for the class '{}': '{}/{}'", name_of(split), found.front(),
                          files.folder, found.front()),
              "all splits have the same classes; add the folder, empty if the split has no image of the class");
  }
}

bool has_form(const ImageFile& file, const ImageForm& form, bool resize) {
  return (form.channels == 3 || file.head.grey) && (resize || seen_size(file.head) == form.size);
}

}  // namespace

void check_form(const ImageFiles& files, const ImageForm& form, bool resize, std::string_view source) {
  for (const ImageFile& file : files.files) {
    if (has_form(file, form, resize)) continue;
    if (form.channels == 1 && !file.head.grey) {
      fail_data(fmt::format("'{}' is in colour, but all training images are grey", files.path_of(file)),
                "convert it to grey, or make the training images colour");
    }
    fail_data(
        fmt::format("'{}' has {}x{} pixels (height x width), but the training images have {}x{}", files.path_of(file),
                    file.head.seen_height(), file.head.seen_width(), form.size.height, form.size.width),
        fmt::format("resize all images: size: [{}, {}] in {}", form.size.height, form.size.width, source));
  }
}

namespace {

// "test images: 3 of 20 are resized to 32x32"
void note_changes(const ImageFiles& files, const std::string& which, const ImageForm& form,
                  std::vector<std::string>& notes) {
  const auto count = [&](auto condition) {
    return std::count_if(files.files.begin(), files.files.end(),
                         [&](const auto& file) { return condition(file.head); });
  };
  const auto note = [&](std::int64_t changed, const std::string& what) {
    if (changed > 0) notes.push_back(fmt::format("{}: {} of {} {}", which, changed, files.files.size(), what));
  };
  note(count([&](const ImageHead& head) { return seen_size(head) != form.size; }),
       "are resized to " + to_text(form.size));
  note(count([](const ImageHead& head) { return head.orientation != 1; }), "are turned as their EXIF data says");
  if (form.channels == 3) note(count([](const ImageHead& head) { return head.grey; }), "are grey and become colour");
}

}  // namespace

std::shared_ptr<const Dataset> decode_and_note(ImageFiles files, const std::string& which, const ImageForm& form,
                                               std::size_t room, std::vector<SkippedRow>* skipped,
                                               std::vector<std::string>& notes) {
  note_changes(files, which, form, notes);
  if (std::string note = note_of_room(files, which, form, room); !note.empty()) notes.push_back(std::move(note));
  return decode_images(std::move(files), form, room, skipped);
}

Declaration<ImageFolder> ImageFolder::declaration() {
  return declare::kind<ImageFolder>(
      {.path = "image_folder",
       .meaning = "Folders of PNG and JPEG files, one folder for each class. The names of the folders, sorted, are the "
                  "classes. Images are decoded to 8 bits; if all training images are grey they have 1 channel, "
                  "else 3. Alpha channels and colour profiles are dropped, the orientation in EXIF data is applied.",
       .example = "source: {image_folder: {train: photos/train, test: photos/test, size: [32, 32]}}"},
      field(&ImageFolder::train, {.path = "train",
                                  .is_path = true,
                                  .need = Need::required,
                                  .meaning = "The folder that contains one folder for each class.",
                                  .example = "train: photos/train"}),
      field(&ImageFolder::validation, {.path = "validation",
                                       .is_path = true,
                                       .meaning = "As train, for the validation split, with the same classes.",
                                       .example = "validation: photos/validation"}),
      field(&ImageFolder::test, {.path = "test",
                                 .is_path = true,
                                 .meaning = "As train, for the test split, with the same classes.",
                                 .example = "test: photos/test"}),
      field(&ImageFolder::size,
            {.path = "size",
             .low = 1,
             .high = 65535,
             .length = 2,
             .meaning = "The height and the width that images are resized to: bilinear, with antialiasing, as Pillow's "
                        "BILINEAR. The ratio of the sides is not kept.",
             .example = "size: [32, 32]",
             .fallback_text = "the size of the images, which must be the same for all"}),
      field(&ImageFolder::on_error,
            {.path = "on_error",
             .meaning = "Files that cannot be read. error: refuse them; skip: leave them out, before validation takes "
                        "its share, as long as they are no more than 1 % of a split, or one file.",
             .example = "on_error: skip"}));
}

Source ImageFolder::open(const Opening& opening) const {
  Source source = open_image_folder(
      *this, [&](Split split) { return opening.wants(split); }, opening.known, opening.left_out);
  for (Diagnostic& warning : source.warnings) warning.place = opening.place;
  return source;
}

Source open_image_folder(const ImageFolder& folder, const std::function<bool(Split)>& wants, const Encoding* known,
                         const Skipped& left_out, std::optional<std::size_t> room) {
  std::map<Split, std::string> folders{{Split::train, folder.train}};
  if (folder.validation) folders.emplace(Split::validation, *folder.validation);
  if (folder.test) folders.emplace(Split::test, *folder.test);

  Source source;
  std::map<Split, ImageFiles> splits;
  const bool by_train = known == nullptr || known->image.empty();  // else by the checkpoint
  for (const auto& [split, path] : folders) {
    if (!wants(split) && !(by_train && split == Split::train)) continue;
    ImageFiles& files = splits[split] = about_file(path, [&, &path = path] {
      ImageFiles listed = list_image_files(path);
      if (listed.files.empty()) fail_data(fmt::format("'{}' has no images in the folders of its classes", path));
      return listed;
    });
    if (!by_train || split != Split::train) continue;
    source.encoding.classes = files.classes;
    for (const std::string& name : empty_classes(files)) {
      source.empty_folders.push_back(fmt::format("{}/{}", path, name));
      source.warnings.push_back({"data",
                                 {},
                                 fmt::format("the class '{}' has no images: '{}'", name, source.empty_folders.back()),
                                 "add some, or remove the folder: it has an output that nothing trains",
                                 {}});
    }
  }
  if (!by_train) source.encoding.classes = known->classes;
  for (const auto& [split, files] : splits) check_classes(files, split, source.encoding.classes, source.empty_folders);
  const bool skips = folder.on_error == OnError::skip, resize = folder.size.has_value();
  std::map<Split, std::int64_t> listed;
  std::map<Split, std::vector<SkippedRow>> skipped;
  for (auto& [split, files] : splits) {
    if (skips) leave_out(files, of_split(left_out, split), skipped[split]);
    listed[split] = std::ssize(files.files) + std::ssize(skipped[split]);
    about_file(files.folder,
               [&, &files = files, &split = split] { read_heads(files, skips ? &skipped[split] : nullptr); });
    if (skips && by_train && split == Split::train) remove_damaged_few(files, resize, skipped[split]);
    if (files.files.empty()) fail_data(fmt::format("no image of '{}' can be read", files.folder));
  }

  ImageForm form;
  if (by_train) {
    form = form_of(splits.at(Split::train), folder.size, "image_folder");
    source.encoding.image = form.shape();
  } else {
    source.encoding.image = known->image;
    form = {{known->image[0], known->image[1]}, known->image[2]};
  }
  for (auto& [split, files] : splits) {
    if (!wants(split)) continue;
    if (skips) {
      remove_damaged(
          files, [&](const ImageFile& file) { return !has_form(file, form, resize); }, skipped[split]);
    }
    check_form(files, form, resize, "image_folder");
    source.of(split) =
        decode_and_note(std::move(files), fmt::format("{} images", name_of(split)), form,
                        room.value_or(room_for_images()), skips ? &skipped[split] : nullptr, source.notes);
    take_skipped(skipped[split], listed[split], "files", split, source.encoding, source.notes);
    if (source.of(split)->size() == 0) fail_data(fmt::format("no image of '{}' can be read", folders.at(split)));
  }
  return source;
}

std::shared_ptr<const Dataset> open_unclassed_images(const std::string& path, const Shape& shape, bool resize,
                                                     std::vector<std::string>& notes,
                                                     std::vector<SkippedRow>* skipped) {
  ImageFiles files = list_unclassed_images(path);
  read_heads(files, skipped);
  const ImageForm form{{shape.at(0), shape.at(1)}, shape.at(2)};
  if (skipped != nullptr) {
    remove_damaged(
        files, [&](const ImageFile& file) { return !has_form(file, form, resize); }, *skipped);
  }
  for (const ImageFile& file : files.files) {
    if (form.channels == 1 && !file.head.grey) {
      fail_data(fmt::format("'{}' is in colour, but the model was trained on grey images", files.path_of(file)),
                "convert it to grey");
    }
    if (!resize && seen_size(file.head) != form.size) {
      fail_data(fmt::format("'{}' has {} pixels (height x width), but the model takes {}", files.path_of(file),
                            to_text(seen_size(file.head)), to_text(form.size)),
                fmt::format("resize it; a run that is trained with size: [{}, {}] in image_folder resizes its images",
                            form.size.height, form.size.width));
    }
  }
  return decode_and_note(std::move(files), "images", form, room_for_images(), skipped, notes);
}

}  // namespace pmaptrain::data
