// Files as immutable bytes, and inflating what is compressed in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/data/mapping.h"

namespace pmaptrain::data {

// An immutable run of bytes that shares ownership of what holds them: a mapping of a file, or memory.
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
  // Mapping::check_unchanged(), as well.
  void check_unchanged() const {
    if (mapping_ != nullptr) mapping_->check_unchanged();
  }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> view_;
  const Mapping* mapping_ = nullptr;  // the owner, where it is one
};

// Maps a regular, non-empty file. Throws Error (data) that names the path and what it is instead, and Error (resource)
// where the process may not map so much. Whoever has read from it calls check_intact().
Bytes map_file(const std::string& path);

// Gives what map_file() and the readers of formats throw the place of the key that names the file, where it has none.
// What is said about relative paths is made true where that key stands in an option.
void give_place(std::vector<Diagnostic>& diagnostics, const Place& place);
// Throws the error again, with that place.
[[noreturn]] void throw_at(const Place& place, const Error& error);

// Memory to fill, as large as a checked header says. Throws Error (resource) when there is not so much.
struct Memory {
  std::shared_ptr<std::byte[]> owner;
  std::span<std::byte> view;
};
Memory allocate(std::uint64_t bytes, std::string_view name);

enum class Compression { gzip, raw_deflate };

// Reads compressed data in order. `name` stands in messages. The compressed bytes must outlive it.
class Inflater {
 public:
  Inflater(std::span<const std::byte> compressed, Compression compression, std::string name);
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Fills `out` and returns its size, or less at the end of the data. Throws Error (data) for damage, and for data
  // that breaks off.
  std::size_t read(std::span<std::byte> out);

  // More than this many bytes cannot come out (deflate expands 1032 times at most): what a header claims is compared
  // with it before memory is taken.
  static std::uint64_t limit(std::uint64_t compressed);

 private:
  bool next_member();
  struct State;
  std::unique_ptr<State> state_;
};

// Whether the bytes begin like a gzip file.
bool is_gzip(std::span<const std::byte> bytes);

// Unsigned integers at bytes.data() + offset; the caller has checked that they lie inside.
std::uint64_t read_little(std::span<const std::byte> bytes, std::size_t offset, std::size_t size);
std::uint64_t read_big(std::span<const std::byte> bytes, std::size_t offset, std::size_t size);

}  // namespace pmaptrain::data
