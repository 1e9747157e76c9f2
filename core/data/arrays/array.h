// Arrays in file formats: any element type, either byte order, unaligned; and conversions from them.
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

enum class Element : std::uint8_t { boolean, u8, i8, u16, i16, u32, i32, u64, i64, bf16, f16, f32, f64 };

std::size_t size_of(Element element);
// "bool", "u8", ..., "f64"
std::string_view name_of(Element element);
constexpr bool is_floating(Element element) {
  return element == Element::bf16 || element == Element::f16 || element == Element::f32 || element == Element::f64;
}
// Whether float32 holds every number of this type.
constexpr bool fits_float(Element element) {
  return element != Element::u32 && element != Element::i32 && element != Element::u64 && element != Element::i64 &&
         element != Element::f64;
}

// Row-major. bytes.size() equals the product of the shape and the size of an element.
struct Array {
  std::string name;  // for messages: "'file'" or "array 'x' of 'file'"
  Element element = Element::u8;
  bool big_endian = false;
  Shape shape;
  Bytes bytes;
};

// The bytes of an array with this shape; none if a dimension is negative or the number overflows 63 bits.
std::optional<std::int64_t> checked_bytes(Element element, const Shape& shape);

// The first finite element that overflows to infinity as a float, with its index; none for types other than f64.
struct Found {
  Shape index;
  double value = 0;
};
std::optional<Found> find_beyond_float(const Array& array);

// The index in each dimension of element `position` (row-major, from 0).
Shape index_of(std::int64_t position, const Shape& shape);

// The position of the first element that is NaN or infinite; none if all are finite.
std::optional<std::size_t> find_nonfinite(std::span<const float> values);

// Converts to.size() elements, beginning at element `from`, with rounding to nearest.
void read_floats(const Array& array, std::int64_t from, std::span<float> to);
// The same, exact for all types but integers of 64 bits.
void read_doubles(const Array& array, std::int64_t from, std::span<double> to);

// Element `index` of an array of integer or boolean type; none if it does not fit in 64 signed bits.
std::optional<std::int64_t> read_integer(const Array& array, std::int64_t index);

// ---- formats -------------------------------------------------------------------------------------------------------
// All throw Error (data), with the name of the file, if it is missing, damaged or not supported. They never read past a
// buffer, and check every size in a header against the size of the file before using it.

// Reads an IDX file (the format of MNIST). A plain file is memory-mapped, a gzip file (recognised by its content) is
// decompressed into memory. parse_idx reads bytes; `path` names them in messages.
Array read_idx(const std::string& path);
Array parse_idx(const Bytes& file, const std::string& path);

// Memory-maps an NPY file of format version 1 to 3; parse_npy reads bytes. An array in Fortran order is copied once, to
// row-major order.
Array read_npy(const std::string& path);
Array parse_npy(const Bytes& bytes, std::string name);

// The header of an NPY file of `size` bytes, and its length in bytes. `head` holds the whole file or its first
// npy_head_bytes, the largest supported header. Throws if `size` is not the length of header and elements.
struct NpyHead {
  Element element = Element::u8;
  bool big_endian = false;
  bool fortran = false;  // the first index is the fastest
  Shape shape;
  std::size_t bytes = 0;
};
constexpr std::size_t npy_head_bytes = 12 + 64 * 1024;
NpyHead check_npy_head(std::span<const std::byte> head, std::uint64_t size, const std::string& name);

// The header of array `key` of an NPZ archive.
NpyHead read_npz_head(const std::string& path, const std::string& key);
// Reads array `key` of an NPZ archive. Stored entries are memory-mapped; deflated entries are decompressed into memory,
// after a check of their header against their size. Checksums are verified.
Array read_npz(const std::string& path, const std::string& key);

}  // namespace pmaptrain::data
