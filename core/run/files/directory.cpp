#include "core/run/files/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include "core/run/files/file_system.h"

namespace pmaptrain::run {
namespace {

namespace fs = std::filesystem;

constexpr int open_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

struct CloseStream {
  void operator()(DIR* stream) const { ::closedir(stream); }
};

// The names in an open directory; none, with errno set, if it cannot be read.
std::optional<std::vector<std::string>> names_in(int fd) {
  // A descriptor of its own, since closedir() closes the descriptor that it reads.
  Descriptor own(file_system().open_at(fd, ".", open_flags));
  if (!own) return std::nullopt;
  const std::unique_ptr<DIR, CloseStream> stream(::fdopendir(own.get()));
  if (!stream) return std::nullopt;
  own.release();
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* const entry = ::readdir(stream.get())) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
    errno = 0;
  }
  if (errno != 0) return std::nullopt;
  std::sort(names.begin(), names.end());
  return names;
}

// Returns 0, or the error number of an entry that could not be removed.
int remove_tree(int fd, const std::string& name) {
  if (file_system().unlink_at(fd, name) == 0 || errno == ENOENT) return 0;
  if (errno != EISDIR && errno != EPERM) return errno;
  const int problem = errno;
  {
    const Descriptor child(file_system().open_at(fd, name, open_flags | O_NOFOLLOW));
    if (!child) return errno == ENOTDIR || errno == ELOOP ? problem : errno;
    const auto names = names_in(child.get());
    if (!names) return errno;
    for (const std::string& inner : *names) {
      if (const int error = remove_tree(child.get(), inner); error != 0) return error;
    }
  }
  return file_system().unlink_at(fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : errno;
}

// Whether symlink() has failed because the file system has no symbolic links: exFAT, many network and FUSE file
// systems.
bool lacks_links(int error) {
  return error == EPERM || error == EOPNOTSUPP || error == ENOTSUP || error == ENOSYS || error == EINVAL;
}

bool same(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

}  // namespace

std::string link_target(int directory, const std::string& path) {
  constexpr std::size_t most = 256;
  std::string found(most, '\0');
  ssize_t length = ::readlinkat(directory, path.c_str(), found.data(), found.size());
  if (length < 0 && errno == EINVAL) {  // it is no link
    const Descriptor file(file_system().open_at(directory, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file) length = ::read(file.get(), found.data(), found.size());
    const std::size_t end = length > 0 ? found.find('\n') : std::string::npos;
    length = end < static_cast<std::size_t>(std::max<ssize_t>(length, 0)) ? static_cast<ssize_t>(end) : 0;
    if (found.find('/') < end) length = 0;  // a link leads to an entry beside it
  }
  found.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return found;
}

Directory Directory::open_subdirectory(const std::string& name, bool make) const {
  const bool made = make && file_system().mkdir_at(fd_.get(), name) == 0;
  if (make && !made && errno != EEXIST) fail_file(path_ / name, "made", errno);
  Descriptor fd(file_system().open_at(fd_.get(), name, open_flags));
  if (!fd) fail_file(path_ / name, made ? "opened" : make ? "made" : "opened", errno);
  if (made) flush();
  return {std::move(fd), path_ / name};
}

Directory Directory::make_unfinished(const std::string& name) const {
  if (file_system().mkdir_at(fd_.get(), name) != 0) fail_file(path_ / name, "made", errno);
  Descriptor fd(file_system().open_at(fd_.get(), name, open_flags));
  if (!fd) fail_file(path_ / name, "opened", errno);
  return {std::move(fd), path_ / name};
}

bool Directory::has(const std::string& name) const {
  struct stat status = {};
  return ::fstatat(fd_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

std::vector<std::string> Directory::names() const {
  auto names = names_in(fd_.get());
  if (!names) fail_file(path_, "read", errno);
  return std::move(*names);
}

void Directory::rename(const std::string& from, const std::string& to) const {
  if (file_system().rename_at(fd_.get(), from, to) != 0) fail_file(path_ / to, "written", errno);
}

bool Directory::exchange(const std::string& a, const std::string& b) const {
  return file_system().exchange_at(fd_.get(), a, b) == 0;
}

void Directory::link(const std::string& target, const std::string& name) const {
  const std::string temporary = ".tmp-" + name;
  remove_quietly(temporary);
  if (file_system().symlink_at(target, fd_.get(), temporary) != 0) {
    if (!lacks_links(errno)) fail_file(path_ / name, "written", errno);
    return write_whole(place(name), target + "\n");
  }
  try {
    rename(temporary, name);
  } catch (...) {
    remove_quietly(temporary);
    throw;
  }
}

void Directory::remove(const std::string& name) const {
  if (const int error = remove_tree(fd_.get(), name); error != 0) fail_file(path_ / name, "removed", error);
}

bool Directory::remove_quietly(const std::string& name) const { return remove_tree(fd_.get(), name) == 0; }

Directory::Whereabouts Directory::whereabouts() const {
  struct stat open = {}, found = {};
  if (::fstat(fd_.get(), &open) != 0) return {};
  if (::stat(path_.c_str(), &found) == 0) {
    if (same(open, found)) return {};
  } else if (errno != ENOENT && errno != ENOTDIR) {
    return {};  // an error of the file system does not say where the directory is
  }
  std::error_code error;
  fs::path now = fs::read_symlink(fmt::format("/proc/self/fd/{}", fd_.get()), error);
  if (error || ::stat(now.c_str(), &found) != 0 || !same(open, found)) now.clear();
  return {false, open.st_nlink == 0, std::move(now)};
}

}  // namespace pmaptrain::run
