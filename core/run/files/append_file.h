// A file that grows line by line while training runs, and what happens when it cannot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "core/run/files/file_writer.h"

namespace pmaptrain::train {

// Where a recorder says, once, that it cannot write. Called from the thread that emits the events.
using Warn = std::function<void(const std::string&)>;

// What a file consists of, by default lines.
struct RecordKind {
  const char* name;
  std::size_t (*first)(std::string_view bytes);  // the length of the record that they begin with
};
std::size_t line_bytes(std::string_view bytes);
inline constexpr RecordKind lines_of_text{"line", line_bytes};

// How many of the first `bytes` of an open file are whole lines. Throws Error (failed), naming `shown`.
std::uint64_t whole_lines(int fd, std::uint64_t bytes, const std::filesystem::path& shown);

// Training goes on when the file cannot be written (a disk that is full for a moment, a share that is away): records
// wait in memory and are tried again with the next ones. Of more than `most_waiting` bytes the oldest are given up.
class AppendFile {
 public:
  static constexpr std::size_t most_waiting = std::size_t{1} << 20;

  AppendFile(FilePlace place, Warn warn, RecordKind kind = lines_of_text);
  // `records` is whole records: lines with their ends. A reader sees whole ones: where only a part gets out, it is
  // taken back.
  void write(std::string_view records);
  // Tries again, and asks the system to bring what was written to the disk.
  void flush();

  // Until the next write, for who has many files.
  void close() { file_.reset(); }

  // The length of the file; 0 where it cannot be known.
  std::uint64_t bytes() const;

  // What the file lacks, as a sentence with the reason; empty when all is there. Lines that wait may still get there.
  std::string missing() const;

 private:
  bool open();
  void try_again();
  void failed(int error, std::string_view what);
  std::int64_t count_waiting() const;

  FilePlace place_;
  Warn warn_;
  RecordKind kind_;
  Descriptor file_;
  std::string waiting_;
  std::int64_t lost_ = 0;      // records given up
  bool flush_failed_ = false;  // what the system had taken may not be on the disk, and it would not say so again
  std::string problem_;        // the system's words of the last failure
  bool warned_ = false;
};

}  // namespace pmaptrain::train
