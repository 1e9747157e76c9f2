#include "core/run/files/file_writer.h"

#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <new>
#include <random>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/run/files/directory.h"
#include "core/run/files/file_system.h"

namespace pmaptrain::run {
namespace {

std::string hex(XXH64_hash_t hash) { return fmt::format("{:016x}", hash); }

// Whether the file is a device or a pipe, which is written to instead of being replaced.
bool is_special(const FilePlace& place) {
  struct stat status = {};
  return ::fstatat(place.directory, place.name.c_str(), &status, 0) == 0 && !S_ISREG(status.st_mode) &&
         !S_ISDIR(status.st_mode);
}

void write_special(const FilePlace& place, std::span<const std::span<const std::byte>> parts) {
  const Descriptor file(file_system().open_at(place.directory, place.name, O_WRONLY | O_CLOEXEC));
  if (!file) fail_file(place.shown, "written", errno);
  for (const std::span<const std::byte> part : parts) {
    if (write_all(file.get(), part) < part.size()) fail_file(place.shown, "written", errno);
  }
}

void flush_folder_of(const FilePlace& place) {
  std::filesystem::path folder = std::filesystem::path(place.name).parent_path();
  if (folder.empty()) folder = ".";
  const Descriptor open(file_system().open_at(place.directory, folder.string(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!open && errno == EACCES) return;  // the directory may allow writing but not reading
  if (!open) fail_file(place.shown.parent_path(), "flushed to the disk", errno);
  flush_to_disk(open.get(), place.shown.parent_path());
}

}  // namespace

std::string system_words(int error) { return std::generic_category().message(error); }

std::string system_help(int error) {
  switch (error) {
    case ENOSPC: return "free some space, or write to another disk";
    case EFBIG: return "a file may not become so large here: raise the limit (ulimit -f), or write to another disk";
    case EDQUOT: return "your disk quota is used up: free some space, or write to another disk";
    case EMFILE: return "raise the limit on open files (ulimit -n)";
    case ENFILE: return "the machine has too many open files: end other processes";
    case EACCES:
    case EPERM:
    case EROFS: return "write to a folder that is yours";
    default: return "";
  }
}

void fail_file(const std::filesystem::path& path, std::string_view done, int error) {
  std::string message = fmt::format("'{}' cannot be {}: {}", path.string(), done, system_words(error));
  throw Error(ExitStatus::failed, Diagnostic{"resource", {}, std::move(message), system_help(error), {}});
}

std::size_t write_all(int fd, std::span<const std::byte> bytes) {
  constexpr std::size_t most = std::numeric_limits<std::int32_t>::max() / 2;  // Linux writes at most 2 GiB at once
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = file_system().write(fd, bytes.subspan(done, std::min(bytes.size() - done, most)));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

void flush_to_disk(int fd, const std::filesystem::path& shown) {
  // EINVAL: the file system cannot flush directories. Such file systems order renames themselves.
  if (file_system().fsync(fd) != 0 && errno != EINVAL) fail_file(shown, "flushed to the disk", errno);
}

std::string hash_hex(std::span<const std::byte> bytes) { return hex(XXH3_64bits(bytes.data(), bytes.size())); }

struct FileWriter::Hash {
  Hash() : state(XXH3_createState(), XXH3_freeState) {
    if (!state) throw std::bad_alloc();
    XXH3_64bits_reset(state.get());
  }
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state;
};

FileWriter::FileWriter(FilePlace place) : place_(std::move(place)), hash_(std::make_unique<Hash>()) {
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  file_ = Descriptor(file_system().open_at(place_.directory, place_.name, flags));
  if (!file_) fail_file(place_.shown, "written", errno);
}

FileWriter::~FileWriter() {
  if (file_) file_system().unlink_at(place_.directory, place_.name);
}

void FileWriter::write(std::span<const std::byte> bytes) {
  constexpr std::size_t slice = std::size_t{1} << 20;  // small enough that it is hashed while it is in the cache
  for (std::size_t at = 0; at < bytes.size(); at += slice) {
    const std::span<const std::byte> part = bytes.subspan(at, std::min(slice, bytes.size() - at));
    XXH3_64bits_update(hash_->state.get(), part.data(), part.size());
    if (write_all(file_.get(), part) < part.size()) fail_file(place_.shown, "written", errno);
  }
}

bool FileWriter::lock() {
  while (file_system().flock(file_.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return true;
  }
  struct stat status = {};
  return ::fstat(file_.get(), &status) != 0 || status.st_nlink > 0;
}

void FileWriter::close() {
  flush_to_disk(file_.get(), place_.shown);
  // On some network file systems only close() reports that a write failed.
  if (file_system().close(file_.release()) == 0 || errno == EINTR) return;
  const int error = errno;
  file_system().unlink_at(place_.directory, place_.name);
  fail_file(place_.shown, "written", error);
}

std::string FileWriter::checksum() const { return hex(XXH3_64bits_digest(hash_->state.get())); }

namespace {

// temporary_name() without the digits at the end.
std::string temporary_prefix(std::string_view file_name) {
  constexpr std::size_t most = 200;  // of the 255 bytes that a name may have
  return fmt::format(".tmp-{}-", file_name.substr(0, most));
}

}  // namespace

std::string temporary_name(std::string_view file_name) {
  // Processes in different containers that share a folder may have the same process number.
  std::random_device random;
  return temporary_prefix(file_name) + fmt::format("{:08x}{:08x}", random(), random());
}

bool is_temporary_name(std::string_view name, std::string_view file_name) {
  const std::string prefix = temporary_prefix(file_name);
  return name.starts_with(prefix) && name.size() > prefix.size() &&
         name.find_first_not_of("0123456789abcdef", prefix.size()) == std::string_view::npos;
}

namespace {

std::string beside(const FilePlace& place) {
  const std::filesystem::path path = place.name;
  return std::filesystem::path(path).replace_filename(temporary_name(path.filename().string()));
}

}  // namespace

Replacement::Replacement(FilePlace place) : place_(std::move(place)) {
  do {
    temporary_ = beside(place_);
    writer_.emplace(FilePlace(place_.directory, temporary_, place_.shown));
  } while (!writer_->lock());
}

Replacement::Replacement(FilePlace place, std::span<const std::span<const std::byte>> parts)
    : Replacement(std::move(place)) {
  for (const std::span<const std::byte> part : parts) write(part);
  close();
}

Replacement::~Replacement() {
  if (!temporary_.empty()) file_system().unlink_at(place_.directory, temporary_);
}

void Replacement::write(std::span<const std::byte> bytes) { writer_->write(bytes); }

void Replacement::close() { writer_->close(); }

void Replacement::take_place() {
  if (file_system().rename_at(place_.directory, temporary_, place_.name) != 0) {
    fail_file(place_.shown, "written", errno);
  }
  temporary_.clear();
}

void remove_abandoned(const FilePlace& place) {
  const std::filesystem::path path = place.name;
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  const Directory directory(Descriptor(file_system().open_at(place.directory, folder.string(), folder_flags)), folder);
  if (directory.fd() < 0) return;
  std::vector<std::string> names;
  try {
    names = directory.names();
  } catch (const Error&) {
    return;
  }
  for (const std::string& name : names) {
    if (!is_temporary_name(name, path.filename().string())) continue;
    constexpr int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW;
    const Descriptor file(file_system().open_at(directory.fd(), name, flags));
    if (!file || file_system().flock(file.get(), LOCK_EX | LOCK_NB) != 0) continue;
    directory.remove_quietly(name);
  }
}

void write_whole(const FilePlace& place, std::span<const std::span<const std::byte>> parts) {
  if (is_special(place)) return write_special(place, parts);
  Replacement(place, parts).take_place();
  flush_folder_of(place);
}

void write_whole(const FilePlace& place, std::string_view text) {
  const std::array parts{std::as_bytes(std::span(text))};
  write_whole(place, std::span<const std::span<const std::byte>>(parts));
}

}  // namespace pmaptrain::run
