#include "core/data/images/files.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/file.h"
#include "core/data/parallel.h"

namespace pmaptrain::data {
namespace {

// Sufficient for the heads of most files, and of any file including its metadata.
constexpr std::size_t head_bytes = std::size_t{64} << 10, most_head_bytes = std::size_t{64} << 20;

constexpr std::string_view layout = "expected one folder for each class, with the images of the class in it";

// None, with errno, of what cannot be reached, such as a link that leads nowhere.
std::optional<mode_t> mode_of(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 ? std::optional(status.st_mode) : std::nullopt;
}

bool is_folder(const std::string& path) {
  const std::optional<mode_t> mode = mode_of(path);
  return mode && S_ISDIR(*mode);
}

bool is_regular(const std::string& path) {
  const std::optional<mode_t> mode = mode_of(path);
  return mode && S_ISREG(*mode);
}

// Names that begin with a dot, and files that Windows leaves in folders of images.
bool is_passed_over(std::string_view name) {
  return name.starts_with('.') || name == "Thumbs.db" || name == "desktop.ini";
}

// The other names in a folder, sorted by bytes.
std::vector<std::string> names_in(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(folder.c_str()), &::closedir);
  if (!directory && errno == ENOTDIR) fail_data(fmt::format("'{}' is a file; {}", folder, layout));
  if (!directory) fail_to_open(folder, errno);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (!is_passed_over(entry->d_name)) names.emplace_back(entry->d_name);
    errno = 0;
  }
  if (errno != 0) fail_to_open(folder, errno);
  std::sort(names.begin(), names.end());
  return names;
}

ImageHead read_head(const std::string& path) {
  const std::vector<std::byte> begin = read_file(path, head_bytes);
  if (begin.size() < head_bytes || !is_image(begin)) return read_image_head(begin, path);
  try {
    return read_image_head(begin, path);
  } catch (const Error&) {
    return read_image_head(read_file(path, most_head_bytes), path);  // metadata may be longer
  }
}

}  // namespace

ImageFiles list_image_files(const std::string& folder) {
  ImageFiles found{folder, {}, {}};
  for (const std::string& name : names_in(folder)) {
    const std::string path = fmt::format("{}/{}", folder, name);
    const std::optional<mode_t> mode = mode_of(path);
    if (!mode) fail_to_open(path, errno);
    if (!S_ISDIR(*mode)) {
      fail_data(fmt::format("'{}' is not in the folder of a class; {}", path, layout),
                "move it into one, or out of the folder; only names that begin with a dot are passed over");
    }
    if (!is_utf8(name)) {
      fail_data(fmt::format("the name of the class '{}' is not UTF-8", path), "rename the folder");
    }
    found.classes.push_back(name);
  }
  if (found.classes.empty()) fail_data(fmt::format("'{}' has no folders; {}", folder, layout));
  if (found.classes.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    fail_data(fmt::format("'{}' has {} folders, more than there are labels", folder, found.classes.size()));
  }
  for (std::size_t label = 0; label < found.classes.size(); ++label) {
    for (const std::string& name : names_in(fmt::format("{}/{}", folder, found.classes[label]))) {
      ImageFile file{fmt::format("{}/{}", found.classes[label], name), static_cast<std::int32_t>(label)};
      if (is_folder(found.path_of(file))) {
        fail_data(fmt::format("'{}' is a folder in the folder of a class; {}", found.path_of(file), layout),
                  fmt::format("if '{}' is the name of a split, give this split's own folder", found.classes[label]));
      }
      file.number = std::ssize(found.files);
      found.files.push_back(std::move(file));
    }
  }
  return found;
}

ImageFiles list_unclassed_images(const std::string& path) {
  if (!is_folder(path)) {
    const std::filesystem::path file(path);
    return {file.has_parent_path() ? file.parent_path().string() : ".", {}, {{file.filename().string()}}};
  }
  ImageFiles found{path, {}, {}};
  for (const std::string& name : names_in(path)) {
    const std::string at = fmt::format("{}/{}", path, name);
    if (!is_folder(at)) {
      found.files.push_back({name});
      continue;
    }
    for (const std::string& inner : names_in(at)) {
      if (is_folder(fmt::format("{}/{}", at, inner))) {
        fail_data(fmt::format("'{}/{}' is a folder in a folder of '{}'", at, inner, path),
                  "images are read from a folder and from the folders in it");
      }
      found.files.push_back({fmt::format("{}/{}", name, inner)});
    }
  }
  if (found.files.empty()) fail_data(fmt::format("'{}' has no images", path));
  for (std::size_t i = 0; i < found.files.size(); ++i) found.files[i].number = static_cast<std::int64_t>(i);
  return found;
}

void read_heads(ImageFiles& files, std::vector<SkippedRow>* skipped) {
  std::vector<std::string> reasons(files.files.size());
  for_each_item(std::ssize(files.files), [&](std::int64_t i) {
    ImageFile& file = files.files[static_cast<std::size_t>(i)];
    try {
      file.head = read_head(files.path_of(file));
    } catch (const Error& error) {
      if (error.status() != ExitStatus::data) throw;
      if (skipped == nullptr && !is_regular(files.path_of(file))) {
        fail_data(error.diagnostics().front().message,
                  "move it out of the folder; on_error: skip in image_folder leaves out a few that cannot be read");
      }
      if (skipped == nullptr) throw;
      reasons[static_cast<std::size_t>(i)] = error.diagnostics().front().message;
    }
  });
  if (skipped != nullptr) remove_unread(files, reasons, *skipped);
}

void leave_out(ImageFiles& files, const std::vector<SkippedRow>& left_out, std::vector<SkippedRow>& skipped) {
  std::set<std::string_view> names;
  for (const SkippedRow& row : left_out) {
    if (row.file.empty()) continue;  // an older run's
    names.insert(row.file);
    skipped.push_back(row);
  }
  std::erase_if(files.files, [&](const ImageFile& file) { return names.contains(file.name); });
}

void remove_unread(ImageFiles& files, const std::vector<std::string>& reasons, std::vector<SkippedRow>& skipped) {
  std::vector<ImageFile> kept;
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    ImageFile& file = files.files[i];
    if (reasons[i].empty()) {
      kept.push_back(std::move(file));
    } else {
      skipped.push_back({file.number, reasons[i], file.name});
    }
  }
  files.files = std::move(kept);
}

}  // namespace pmaptrain::data
