// Writing files so that a reader, a crash or a full disk never meets half of one.
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

namespace pmaptrain::train {

// Where a file is: a path, or a name in a directory that is held open, which reaches that directory wherever it is
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

// Takes what is written, in order.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void write(std::span<const std::byte> bytes) = 0;
};

// A new file, written from its start to its end, slice by slice, with a checksum of what was written. Unless close()
// was reached it is removed again.
class FileWriter : public ByteSink {
 public:
  // Throws Error (failed) when the file cannot be made, or is there already.
  explicit FileWriter(FilePlace place);
  ~FileWriter() override;
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  // Throws Error (failed). Holds no copy of the bytes.
  void write(std::span<const std::byte> bytes) override;
  // Holds a lock on the file for as long as it is open, where the file system has locks. False where remove_abandoned()
  // came first.
  bool lock();
  // Flushes the file to the disk. Throws Error (failed).
  void close();
  // XXH3 of what was written, as 16 hexadecimal digits.
  std::string checksum() const;

 private:
  struct Hash;
  FilePlace place_;
  Descriptor file_;
  std::unique_ptr<Hash> hash_;
};

// XXH3 of bytes, as 16 hexadecimal digits.
std::string hash_hex(std::span<const std::byte> bytes);

// A file that is written whole beside its place, flushed to the disk, and then takes that place in one step. Until then
// the place is as it was; what never takes it is removed.
class Replacement : public ByteSink {
 public:
  // Begins an empty file. This and write() throw Error (failed) with the place's path and the system's reason.
  explicit Replacement(FilePlace place);
  // A whole file.
  Replacement(FilePlace place, std::span<const std::span<const std::byte>> parts);
  ~Replacement() override;
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  void write(std::span<const std::byte> bytes) override;
  // Flushes the file to the disk; nothing is written after that. Throws Error (failed).
  void close();
  // Throws Error (failed).
  void take_place();

 private:
  FilePlace place_;
  std::string temporary_;             // beside it; empty once it has taken the place
  std::optional<FileWriter> writer_;  // until close()
};

// Removes what replacements of this file left that were under way when their processes were killed; what cannot be
// removed stays. Those of living processes are locked.
void remove_abandoned(const FilePlace& place);

// Makes the file hold the concatenated parts, or leaves it as it was: a temporary file beside it, flushed to the disk,
// then renamed. A device or a pipe is written to. Throws Error (failed) with the path and the system's reason.
void write_whole(const FilePlace& place, std::span<const std::span<const std::byte>> parts);
void write_whole(const FilePlace& place, std::string_view text);

// A name for a file beside one of this name, until it takes that: ".tmp-<name>-<hexadecimal digits>", another one at
// each call. A process that is killed leaves it.
std::string temporary_name(std::string_view file_name);
// Whether temporary_name(file_name) may have given `name`.
bool is_temporary_name(std::string_view name, std::string_view file_name);

// Writes all of `bytes`. Returns how many got out: less, with errno set, when that fails.
std::size_t write_all(int fd, std::span<const std::byte> bytes);

// Flushes an open file or directory to the disk. Throws Error (failed).
void flush_to_disk(int fd, const std::filesystem::path& shown);

// The system's words for an error number, and what a user can do about it where that is known.
std::string system_words(int error);
std::string system_help(int error);

// Throws Error (failed): "'path' cannot be <done>: <the system's words for `error`>", with a help where one is known.
[[noreturn]] void fail_file(const std::filesystem::path& path, std::string_view done, int error);

}  // namespace pmaptrain::train
