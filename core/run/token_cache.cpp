#include "core/run/token_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/run/files/file_system.h"
#include "core/run/files/file_writer.h"

namespace pmaptrain::run {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view ending = ".tokens";
constexpr std::size_t most_kept = 8;

// Which file is at a path; none if there is none.
struct Identity {
  dev_t device = 0;
  ino_t number = 0;
  friend bool operator==(const Identity&, const Identity&) = default;
};
std::optional<Identity> identity_of(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return Identity{status.st_dev, status.st_ino};
}

// The turn to make what is kept at a path: held by one process at a time. Where it cannot be had, as on a file system
// without locks, each makes its own.
class Turn {
 public:
  explicit Turn(const std::string& path)
      : path_(path + ".lock"), file_(file_system().open_at(AT_FDCWD, path_, O_RDWR | O_CREAT | O_CLOEXEC)) {
    if (!file_) return;
    while (file_system().flock(file_.get(), LOCK_EX) != 0) {
      if (errno != EINTR) return;
    }
    is_held_ = true;
  }
  // Who waits has the file open, and gets its lock next; who comes later makes a new one, and may go on beside.
  ~Turn() {
    if (is_held_) file_system().unlink_at(AT_FDCWD, path_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::string path_;
  Descriptor file_;
  bool is_held_ = false;
};

class Tokens final : public data::TokenCache {
 public:
  Tokens(fs::path folder, Keeps keeps) : folder_(std::move(folder)), keeps_(keeps) {}

  std::optional<data::Bytes> find(const std::string& name) override {
    const fs::path file = path_of(name);
    found_[name] = identity_of(file.string());
    std::error_code error;
    if (!fs::is_regular_file(file, error)) return std::nullopt;
    try {
      return data::map_file(file.string());
    } catch (const Error&) {
      return std::nullopt;  // it is written again
    }
  }

  std::optional<data::Bytes> keep(const std::string& name, const std::function<void(const Append&)>& write) override {
    if (keeps_ == Keeps::no) return std::nullopt;
    const std::string path = path_of(name).string();
    try {
      make_directories(folder_);
      const Turn turn(path);
      const std::optional<Identity> there = identity_of(path);
      if (there && there != found_[name]) return data::map_file(path);  // another process has made it meanwhile
      remove_abandoned(path);
      Replacement file(path);
      write([&](std::span<const std::byte> bytes) { file.write(bytes); });
      file.close();
      file.take_place();
      data::Bytes bytes = data::map_file(path);
      remove_old();
      return bytes;
    } catch (const Error& error) {
      // What the texts are to blame for is no matter of the cache.
      if (error.status() != ExitStatus::failed) throw;
      return std::nullopt;
    }
  }

 private:
  fs::path path_of(const std::string& name) const { return folder_ / (name + std::string(ending)); }

  // A process that has mapped one keeps its bytes.
  void remove_old() const {
    std::vector<std::pair<fs::file_time_type, fs::path>> kept;
    std::error_code error;
    for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
      if (at->path().extension() == ending) kept.emplace_back(at->last_write_time(error), at->path());
    }
    std::sort(kept.rbegin(), kept.rend());
    for (std::size_t i = most_kept; i < kept.size(); ++i) file_system().unlink_at(AT_FDCWD, kept[i].second.string());
  }

  fs::path folder_;
  Keeps keeps_;
  std::map<std::string, std::optional<Identity>> found_;  // by name, what find() looked at
};

}  // namespace

std::shared_ptr<data::TokenCache> tokens_beside(const fs::path& run_dir, Keeps keeps) {
  std::error_code error;
  fs::path folder = fs::absolute(run_dir, error).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // "runs/a/"
  return std::make_shared<Tokens>(folder.parent_path() / ".tokens", keeps);
}

}  // namespace pmaptrain::run
