#include "core/sweep/data_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include "core/data/file.h"
#include "core/input/content.h"

namespace pmaptrain::sweep {
namespace {

namespace fs = std::filesystem;

void add_files(const std::string& path, std::set<std::string>& files) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    if (fs::exists(path, error)) files.insert(path);
    return;
  }
  for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) files.insert(at->path().string());
  }
}

}  // namespace

std::vector<DataFile> data_files_of(const std::vector<std::string>& paths, const std::vector<DataFile>& known) {
  std::set<std::string> files;
  for (const std::string& path : paths) add_files(path, files);
  std::vector<DataFile> found;
  for (const std::string& path : files) {
    struct stat status = {};
    if (::stat(path.c_str(), &status) != 0) data::fail_to_open(path, errno);
    constexpr std::int64_t second = 1'000'000'000;
    DataFile file{path, status.st_size, status.st_mtim.tv_sec * second + status.st_mtim.tv_nsec, ""};
    const auto before = std::lower_bound(known.begin(), known.end(), path,
                                         [](const DataFile& one, const std::string& name) { return one.path < name; });
    const bool same =
        before != known.end() && before->path == path && before->bytes == file.bytes && before->changed == file.changed;
    if (same) {
      file.hash = before->hash;
    } else if (file.bytes > 0) {
      file.hash = input::content_of(path).hash;
    }
    found.push_back(std::move(file));
  }
  return found;
}

std::vector<std::string> changed_files(const std::vector<DataFile>& before, const std::vector<DataFile>& now) {
  std::vector<std::string> changed;
  const auto hash_in = [](const std::vector<DataFile>& files, const std::string& path) -> const std::string* {
    const auto at = std::find_if(files.begin(), files.end(), [&](const DataFile& one) { return one.path == path; });
    return at == files.end() ? nullptr : &at->hash;
  };
  for (const DataFile& file : before) {
    const std::string* const hash = hash_in(now, file.path);
    if (hash == nullptr || *hash != file.hash) changed.push_back(file.path);
  }
  for (const DataFile& file : now) {
    if (hash_in(before, file.path) == nullptr) changed.push_back(file.path);
  }
  return changed;
}

}  // namespace pmaptrain::sweep
