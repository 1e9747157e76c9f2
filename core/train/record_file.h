// Writing files so that a reader, a crash or a full disk never meets half of one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace pmaptrain::train {

// Where a recorder says, once, that it cannot write any more. Called from the thread that emits the events.
using Warn = std::function<void(const std::string&)>;

// An open file descriptor, closed with its owner. -1: none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

// Writes all of `bytes`; false, with errno set, when that fails.
bool write_all(int fd, std::span<const std::byte> bytes);

// A file that grows line by line while training runs. A failure (a full disk, a vanished share) is told once through
// `warn`; later lines are dropped, and training goes on.
class AppendFile {
 public:
  AppendFile(std::filesystem::path path, Warn warn);
  // `text` is whole lines with their ends. One write each, so that a reader sees whole lines; where only a part gets
  // out, that part is taken back.
  void write(std::string_view text);

 private:
  void give_up(int error);

  std::filesystem::path path_;
  Warn warn_;
  Descriptor file_;
};

// Makes `path` hold the concatenated parts, or leaves it as it was: a temporary file beside it, flushed to the disk,
// then renamed. A device or a pipe is written to. Throws Error (failed) with the path and the system's reason.
void write_whole(const std::filesystem::path& path, std::span<const std::span<const std::byte>> parts);
void write_whole(const std::filesystem::path& path, std::string_view text);

// Flushes a file or a directory to the disk. Throws Error (failed).
void flush_to_disk(const std::filesystem::path& path);

// Throws Error (failed): "'path' cannot be <done>: <the system's words for `error`>", with a help where one is known.
[[noreturn]] void fail_file(const std::filesystem::path& path, std::string_view done, int error);

}  // namespace pmaptrain::train
