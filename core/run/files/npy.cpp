#include "core/run/files/npy.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "core/run/files/append_file.h"

namespace pmaptrain::run {
namespace {

using Part = std::span<const std::byte>;

std::string_view descr_of(DType dtype) {
  switch (dtype) {
    case DType::bf16: return "<V2";  // what NumPy writes for ml_dtypes.bfloat16, for which it has no name
    case DType::f32: return "<f4";
    case DType::f64: return "<f8";
    case DType::i32: return "<i4";
    case DType::i64: return "<i8";
    case DType::u8: return "|u1";
    case DType::u32: return "<u4";
    case DType::boolean: break;
  }
  return "|b1";
}

void append_little(std::string& text, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xFF);
}

std::uint32_t checksum(std::uint32_t start, Part bytes) {
  if (bytes.empty()) return start;  // crc32() of a null pointer would return the initial value
  return static_cast<std::uint32_t>(::crc32_z(start, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// Builds the archive as a list of parts. Large contents are referred to, not copied.
class ZipWriter {
 public:
  explicit ZipWriter(std::uint64_t zip64_from) : zip64_from_(zip64_from) {}

  void add(const std::string& name, std::string head, Part body) {
    const std::uint64_t size = head.size() + body.size();
    const std::uint32_t crc = checksum(checksum(0, std::as_bytes(std::span(head))), body);
    const bool large = size >= zip64_from_;
    const bool far = at_ >= zip64_from_;
    const std::uint64_t size_field = large ? 0xFFFF'FFFF : size;

    std::string fields;                                // the fields that both headers have
    append_little(fields, large || far ? 45 : 20, 2);  // version needed
    append_little(fields, 1U << 11, 2);                // names are UTF-8
    append_little(fields, 0, 2);                       // stored
    append_little(fields, 0, 2);                       // no time, so that equal tensors give equal files
    append_little(fields, 0x21, 2);                    // 1980-01-01
    append_little(fields, crc, 4);
    append_little(fields, size_field, 4);
    append_little(fields, size_field, 4);
    append_little(fields, name.size(), 2);

    std::string sizes;
    if (large) {
      append_little(sizes, size, 8);
      append_little(sizes, size, 8);
    }
    std::string local = "PK\x03\x04" + fields;
    append_extra(local, sizes, name);

    directory_ += "PK\x01\x02";
    append_little(directory_, 45, 2);  // version made by
    directory_ += fields;
    std::string extra = sizes;
    if (far) append_little(extra, at_, 8);
    append_little(directory_, extra.empty() ? 0 : extra.size() + 4, 2);
    append_little(directory_, 0, 2);  // comment
    append_little(directory_, 0, 2);  // disk
    append_little(directory_, 0, 2);  // internal attributes
    append_little(directory_, 0, 4);  // external attributes
    append_little(directory_, far ? 0xFFFF'FFFF : at_, 4);
    directory_ += name;
    append_zip64(directory_, extra);
    ++entries_;

    keep(std::move(local));
    keep(std::move(head));
    parts_.push_back(body);
    at_ += body.size();
  }

  const std::vector<Part>& finish() {
    const std::uint64_t start = at_, size = directory_.size();
    keep(std::move(directory_));
    const bool wide = start >= zip64_from_ || size >= zip64_from_ || entries_ >= 0xFFFF;
    std::string end;
    if (wide) {
      const std::uint64_t record = at_;
      end += "PK\x06\x06";
      append_little(end, 44, 8);  // the number of bytes that follow
      append_little(end, 45, 2);
      append_little(end, 45, 2);
      append_little(end, 0, 4);
      append_little(end, 0, 4);
      append_little(end, entries_, 8);
      append_little(end, entries_, 8);
      append_little(end, size, 8);
      append_little(end, start, 8);
      end += "PK\x06\x07";
      append_little(end, 0, 4);
      append_little(end, record, 8);
      append_little(end, 1, 4);
    }
    end += "PK\x05\x06";
    append_little(end, 0, 4);
    append_little(end, wide ? 0xFFFF : entries_, 2);
    append_little(end, wide ? 0xFFFF : entries_, 2);
    append_little(end, wide ? 0xFFFF'FFFF : size, 4);
    append_little(end, wide ? 0xFFFF'FFFF : start, 4);
    append_little(end, 0, 2);
    keep(std::move(end));
    return parts_;
  }

 private:
  static void append_zip64(std::string& to, const std::string& content) {
    if (content.empty()) return;
    append_little(to, 1, 2);
    append_little(to, content.size(), 2);
    to += content;
  }
  static void append_extra(std::string& local, const std::string& content, const std::string& name) {
    append_little(local, content.empty() ? 0 : content.size() + 4, 2);
    local += name;
    append_zip64(local, content);
  }
  void keep(std::string text) {
    at_ += text.size();
    texts_.push_back(std::move(text));
    parts_.push_back(std::as_bytes(std::span(texts_.back())));
  }

  std::uint64_t zip64_from_;
  std::deque<std::string> texts_;  // a deque, because parts_ points to its elements
  std::vector<Part> parts_;
  std::string directory_;
  std::uint64_t at_ = 0, entries_ = 0;
};

std::string header_of(const Tensor& tensor) {
  assert(tensor.bytes.size() == size_of(tensor.dtype) * static_cast<std::size_t>(numel(tensor.shape)));
  return npy_header(tensor.dtype, tensor.shape);
}

}  // namespace

// Magic, version, length, and the dictionary padded to a multiple of 64 bytes.
std::string npy_header(DType dtype, const Shape& shape) {
  std::string sizes;
  for (const std::int64_t size : shape) sizes += std::to_string(size) + ", ";
  // (3,) for one dimension, (3, 4) for two, () for none
  if (!sizes.empty()) sizes.erase(shape.size() == 1 ? sizes.size() - 1 : sizes.size() - 2);
  std::string dictionary =
      "{'descr': '" + std::string(descr_of(dtype)) + "', 'fortran_order': False, 'shape': (" + sizes + "), }";
  constexpr std::size_t before = 10, alignment = 64;
  while ((before + dictionary.size() + 1) % alignment != 0) dictionary += ' ';
  dictionary += '\n';
  std::string header = "\x93NUMPY";
  header += '\x01';
  header += '\x00';
  append_little(header, dictionary.size(), 2);
  return header + dictionary;
}

void write_npy(const std::string& path, const Tensor& tensor) {
  const std::string header = header_of(tensor);
  const std::array<Part, 2> parts{std::as_bytes(std::span(header)), Part(tensor.bytes)};
  write_whole(path, parts);
}

void write_npz(const std::string& path, const Tensors& tensors, std::uint64_t zip64_from) {
  ZipWriter zip(zip64_from);
  for (const auto& [name, tensor] : tensors) zip.add(name + ".npy", header_of(tensor), tensor.bytes);
  write_whole(path, zip.finish());
}

}  // namespace pmaptrain::run
