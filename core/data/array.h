// Arrays as files hold them: any element type, either byte order, unaligned; and the conversions out of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/shape.h"
#include "core/data/file.h"

namespace pmaptrain::data {

enum class Element : std::uint8_t { boolean, u8, i8, u16, i16, u32, i32, u64, i64, f32, f64 };

std::size_t size_of(Element element);
// "bool", "u8", ..., "f64"
std::string_view name_of(Element element);
constexpr bool is_floating(Element element) { return element == Element::f32 || element == Element::f64; }

// Row-major. bytes.size() is exactly what element and shape say.
struct Array {
  std::string name;  // for messages: "'file'" or "array 'x' of 'file'"
  Element element = Element::u8;
  bool big_endian = false;
  Shape shape;
  Bytes bytes;
};

// Bytes of an array with this shape; none when a dimension is negative or the count overflows 63 bits.
std::optional<std::int64_t> checked_bytes(Element element, const Shape& shape);

// The first finite element that becomes an infinity as float, and where it is; none in types other than f64.
struct Found {
  Shape index;
  double value = 0;
};
std::optional<Found> find_beyond_float(const Array& array);

// The place of element `position` (row-major, from 0) in an array: one number for each dimension.
Shape index_of(std::int64_t position, const Shape& shape);

// Converts the to.size() elements from `from` on (in elements), rounding to nearest where float is too narrow.
void read_floats(const Array& array, std::int64_t from, std::span<float> to);

// Element `index` of an array of an integer or boolean type; none when it does not fit in 64 signed bits.
std::optional<std::int64_t> read_integer(const Array& array, std::int64_t index);

// ---- formats -------------------------------------------------------------------------------------------------------
// All throw Error (data) for what is missing, damaged or not understood, with the file's name. They never read past a
// buffer and compare every size that a header claims with the file's before believing it.

// An IDX file (MNIST's format), plain (memory-mapped) or gzip (read into memory); told apart by content. And the same
// from bytes, of which `path` says whose they are.
Array read_idx(const std::string& path);
Array parse_idx(const Bytes& file, const std::string& path);

// An NPY file of format version 1 to 3, memory-mapped; and the same from bytes.
Array read_npy(const std::string& path);
Array parse_npy(const Bytes& bytes, std::string name);

// What an NPY file of `size` bytes says of itself, and how many of them it takes to say so. `head` holds all, or the
// first npy_head_bytes, which no header exceeds. The size must be exactly what it says.
struct NpyHead {
  Element element = Element::u8;
  bool big_endian = false;
  Shape shape;
  std::size_t bytes = 0;
};
constexpr std::size_t npy_head_bytes = 12 + 64 * 1024;
NpyHead check_npy_head(std::span<const std::byte> head, std::uint64_t size, const std::string& name);

// Array `key` of an NPZ archive: stored entries are memory-mapped, deflated ones read into memory once their header
// fits the size that they claim. Checksums are verified.
Array read_npz(const std::string& path, const std::string& key);

}  // namespace pmaptrain::data
