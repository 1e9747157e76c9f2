// A file that grows line by line while training runs, and what happens when it cannot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/train/file_writer.h"

namespace pmaptrain::train {

// Where a recorder says, once, that it cannot write. Called from the thread that emits the events.
using Warn = std::function<void(const std::string&)>;

// Training goes on when the file cannot be written (a disk that is full for a moment, a share that is away): lines wait
// in memory and are tried again with the next ones. Of more than `most_waiting` bytes the oldest lines are given up.
class AppendFile {
 public:
  static constexpr std::size_t most_waiting = std::size_t{1} << 20;

  AppendFile(FilePlace place, Warn warn);
  // `lines` is whole lines with their ends. A reader sees whole lines: where only a part gets out, it is taken back.
  void write(std::string_view lines);
  // Tries again, and asks the system to bring what was written to the disk.
  void flush();

  // The length of the file; 0 where it cannot be known.
  std::uint64_t bytes() const;

  // What the file lacks, as a sentence with the reason; empty when all is there. Lines that wait may still get there.
  std::string missing() const;

 private:
  bool open();
  void try_again();
  void failed(int error, std::string_view what);

  FilePlace place_;
  Warn warn_;
  Descriptor file_;
  std::string waiting_;
  std::int64_t lost_ = 0;      // lines given up
  bool flush_failed_ = false;  // what the system had taken may not be on the disk, and it would not say so again
  std::string problem_;        // the system's words of the last failure
  bool warned_ = false;
};

}  // namespace pmaptrain::train
