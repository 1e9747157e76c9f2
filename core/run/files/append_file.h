// A file that grows line by line while training runs, and that may be impossible to write for a while.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "core/run/files/file_writer.h"

namespace pmaptrain::run {

// Receives the message that a recorder cannot write, once per recorder. Called from the thread that emits the events.
using Warn = std::function<void(const std::string&)>;

// The kind of records that a file consists of; by default lines.
struct RecordKind {
  const char* name;
  std::size_t (*first)(std::string_view bytes);  // the length of the first record in `bytes`
};
std::size_t line_bytes(std::string_view bytes);
inline constexpr RecordKind lines_of_text{"line", line_bytes};

// Counts how many of the first `bytes` of an open file belong to whole lines. Throws Error (failed), naming `shown`.
std::uint64_t whole_lines(int fd, std::uint64_t bytes, const std::filesystem::path& shown);

// Training goes on when the file cannot be written (a full disk, a network share that is offline). Records then wait in
// memory and are written with the next ones. If more than `most_waiting` bytes wait, the oldest records are dropped.
class AppendFile {
 public:
  static constexpr std::size_t most_waiting = std::size_t{1} << 20;

  AppendFile(FilePlace place, Warn warn, RecordKind kind = lines_of_text);
  // `records` contains whole records: lines with their ends. A reader sees only whole records: if only a part could be
  // written, that part is removed again.
  void write(std::string_view records);
  // Tries again to write what waits, and flushes the file to the disk.
  void flush();

  // Closes the file until the next write. For callers that have many files.
  void close() { file_.reset(); }

  // The length of the file; 0 if it is unknown.
  std::uint64_t bytes() const;

  // A sentence that says what is missing in the file, and why; empty if nothing is. Lines that wait may still be
  // written.
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
  std::int64_t lost_ = 0;      // records that were dropped
  bool flush_failed_ = false;  // bytes that the system accepted may not be on the disk; it reports this once only
  std::string problem_;        // the system's message for the last failure
  bool warned_ = false;
};

}  // namespace pmaptrain::run
