// Files as immutable bytes, and decompression.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/data/mapping.h"

namespace pmaptrain::data {

// An immutable range of bytes, which shares ownership of its storage: the mapping of a file, or memory.
class Bytes {
 public:
  Bytes() = default;
  Bytes(std::shared_ptr<const void> owner, std::span<const std::byte> view) : owner_(std::move(owner)), view_(view) {}
  explicit Bytes(std::shared_ptr<const Mapping> mapping) : view_(mapping->view()), mapping_(mapping.get()) {
    owner_ = std::move(mapping);
  }

  std::size_t size() const { return view_.size(); }
  const std::byte* data() const { return view_.data(); }
  std::span<const std::byte> view() const { return view_; }
  // offset + count <= size()
  Bytes slice(std::size_t offset, std::size_t count) const {
    Bytes part = *this;
    part.view_ = view_.subspan(offset, count);
    return part;
  }
  // Mapping::check_intact() for a file, nothing for memory.
  void check_intact() const {
    if (mapping_ != nullptr) mapping_->check_intact();
  }
  // Mapping::check_unchanged() for a file, nothing for memory.
  void check_unchanged() const {
    if (mapping_ != nullptr) mapping_->check_unchanged();
  }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> view_;
  const Mapping* mapping_ = nullptr;  // the owner, if it is a mapping
};

inline std::string_view as_chars(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Maps a regular, non-empty file. Throws Error (data), which names the path, if it is not one, and Error (resource) if
// the address space is too small. Call check_intact() after reading from it.
Bytes map_file(const std::string& path);

// Reads a regular, non-empty file, or its first `most` bytes, with the errors of map_file(). For many small files, of
// which a mapping each would be too much. Throws Error (data) if it becomes shorter meanwhile, and (resource) if there
// is too little memory.
std::vector<std::byte> read_file(const std::string& path, std::size_t most = std::numeric_limits<std::size_t>::max());
// Throws the Error for a file or folder that cannot be opened, by its errno.
[[noreturn]] void fail_to_open(const std::string& path, int error);

// Rethrows the error, which is about that file or folder of data (Diagnostic::file) if it does not say about which.
[[noreturn]] void throw_about(const std::string& path, const Error& error);
// What `f` returns; its errors are about that file or folder.
template <class F>
decltype(auto) about_file(const std::string& path, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw_about(path, error);
  }
}

// Sets the place of diagnostics without one (from map_file() and the readers of formats) to that of the key that names
// the file. Adapts the help about relative paths if this key is in an option.
void give_place(std::vector<Diagnostic>& diagnostics, const Place& place);
// Rethrows the error with that place.
[[noreturn]] void throw_at(const Place& place, const Error& error);
// What `f` returns; errors get that place.
template <class F>
decltype(auto) at_place(const Place& place, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw_at(place, error);
  }
}

enum class Compression { gzip, raw_deflate };

// Decompresses sequentially. `name` is for messages. The compressed bytes must outlive it.
class Inflater {
 public:
  Inflater(std::span<const std::byte> compressed, Compression compression, std::string name);
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Fills `out` and returns its size, or less at the end of the data. Throws Error (data) for damaged or truncated
  // data.
  std::size_t read(std::span<std::byte> out);

  // The largest possible size after decompression (deflate expands at most 1032 times). A size in a header is checked
  // against it before memory is allocated.
  static std::uint64_t limit(std::uint64_t compressed);

 private:
  bool next_member();
  struct State;
  std::unique_ptr<State> state_;
};

// Decompresses a gzip file at once, with libdeflate where there is one, which takes less than half of the time of an
// Inflater. Returns false, with `out` undefined, for a file that is damaged or has another size when decompressed, and
// perhaps for one of several members: an Inflater tells which.
bool inflate_whole(std::span<const std::byte> gzip, std::span<std::byte> out);

// Whether the bytes begin as a gzip file does.
bool is_gzip(std::span<const std::byte> bytes);

// Unsigned integers at bytes.data() + offset. Precondition: offset + size <= bytes.size().
std::uint64_t read_little(std::span<const std::byte> bytes, std::size_t offset, std::size_t size);
std::uint64_t read_big(std::span<const std::byte> bytes, std::size_t offset, std::size_t size);

}  // namespace pmaptrain::data
