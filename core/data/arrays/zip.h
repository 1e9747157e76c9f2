// A reader of the zip features that NPZ files use: stored and deflated entries, ZIP64 sizes; no encryption, no archives
// split over several files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/file.h"

namespace pmaptrain::data {

class ZipArchive {
 public:
  struct Entry {
    std::string name;
    std::uint16_t flags = 0;
    std::uint16_t method = 0;  // 0 stored, 8 deflated
    std::uint32_t crc = 0;
    std::uint64_t compressed = 0, uncompressed = 0;  // bytes
    std::uint64_t local_header = 0;                  // offset in the archive
  };

  // Maps the file and reads its directory, or reads bytes, which `path` names in messages. Throws Error (data).
  explicit ZipArchive(const std::string& path);
  ZipArchive(std::string path, Bytes file);

  const std::string& path() const { return path_; }
  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* find(const std::string& name) const;  // null if there is none

  // The content of the entry: a slice of the mapping, or decompressed into memory. Verifies its checksum. Throws Error
  // (data).
  Bytes read(const Entry& entry) const;
  // At most its first `count` bytes; only these are decompressed, and the checksum is not verified.
  Bytes head(const Entry& entry, std::uint64_t count) const;

 private:
  Bytes stored(const Entry& entry) const;
  Bytes inflated(const Entry& entry, std::uint64_t count) const;
  void read_directory(std::uint64_t offset, std::uint64_t size, std::uint64_t count);
  std::string name_of(const Entry& entry) const;
  [[noreturn]] void fail(const std::string& what) const;

  std::string path_;
  Bytes file_;
  std::vector<Entry> entries_;
};

}  // namespace pmaptrain::data
