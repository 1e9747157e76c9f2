// Writes files such that no reader, crash or full disk leaves a half-written file.
#pragma once

#include <fcntl.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/descriptor.h"

namespace pmaptrain::run {

// The place of a file: a path, or a name in a directory that is held open, which also works after the directory was
// moved. The directory outlives this.
struct FilePlace {
  FilePlace(const std::string& path) : name(path), shown(path) {}
  FilePlace(const char* path) : name(path), shown(path) {}
  FilePlace(int open_directory, std::string name_there, std::filesystem::path shown_path)
      : directory(open_directory), name(std::move(name_there)), shown(std::move(shown_path)) {}

  int directory = AT_FDCWD;
  std::string name;
  std::filesystem::path shown;  // for messages
};

// Takes bytes in the order of the calls.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void write(std::span<const std::byte> bytes) = 0;
};

// A new file that is written from its start to its end, slice by slice, with a checksum of its bytes. It is removed
// again unless close() is called.
class FileWriter : public ByteSink {
 public:
  // Throws Error (failed) if the file cannot be created or already exists.
  explicit FileWriter(FilePlace place);
  ~FileWriter() override;
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  // Throws Error (failed). Does not copy the bytes.
  void write(std::span<const std::byte> bytes) override;
  // Locks the file until it is closed, if the file system has locks. Returns false if remove_abandoned() removed the
  // file first.
  bool lock();
  // Flushes the file to the disk. Throws Error (failed).
  void close();
  // XXH3 of the bytes written, as 16 hexadecimal digits.
  std::string checksum() const;

 private:
  struct Hash;
  FilePlace place_;
  Descriptor file_;
  std::unique_ptr<Hash> hash_;
};

// XXH3 of `bytes`, as 16 hexadecimal digits.
std::string hash_hex(std::span<const std::byte> bytes);

// A temporary file that is written beside its place, flushed to the disk, and then renamed to its place in one step.
// Until then the place is unchanged. The temporary file is removed unless take_place() is called.
class Replacement : public ByteSink {
 public:
  // Begins an empty file. This and write() throw Error (failed) with the place's path and the system's reason.
  explicit Replacement(FilePlace place);
  // Writes the whole file.
  Replacement(FilePlace place, std::span<const std::span<const std::byte>> parts);
  ~Replacement() override;
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  void write(std::span<const std::byte> bytes) override;
  // Flushes the file to the disk. Nothing can be written after that. Throws Error (failed).
  void close();
  // Renames the file to its place. Throws Error (failed).
  void take_place();

 private:
  FilePlace place_;
  std::string temporary_;             // the name beside the place; empty after take_place()
  std::optional<FileWriter> writer_;  // until close()
};

// Removes the temporary files of this file's replacements whose processes were killed. Files that cannot be removed
// stay. A living process holds a lock on its file, so that file stays too.
void remove_abandoned(const FilePlace& place);

// Replaces the contents of the file by the concatenated parts, or leaves the file unchanged: writes a temporary file,
// flushes it to the disk and renames it. A device or a pipe is written to directly. Throws Error (failed) with the path
// and the system's reason.
void write_whole(const FilePlace& place, std::span<const std::span<const std::byte>> parts);
void write_whole(const FilePlace& place, std::string_view text);

// A name for a temporary file beside `file_name`: ".tmp-<name>-<hexadecimal digits>", different at each call. A process
// that is killed leaves the file behind.
std::string temporary_name(std::string_view file_name);
// Whether `name` can be a result of temporary_name(file_name).
bool is_temporary_name(std::string_view name, std::string_view file_name);

// Writes all of `bytes`. Returns the number of bytes written; on failure this is less, and errno is set.
std::size_t write_all(int fd, std::span<const std::byte> bytes);

// Flushes an open file or directory to the disk. Throws Error (failed).
void flush_to_disk(int fd, const std::filesystem::path& shown);

// The system's message for an error number, and a hint for the user where there is one.
std::string system_words(int error);
std::string system_help(int error);

// Throws Error (failed): "'path' cannot be <done>: <the system's message for `error`>", with a hint where there is one.
[[noreturn]] void fail_file(const std::filesystem::path& path, std::string_view done, int error);

}  // namespace pmaptrain::run
