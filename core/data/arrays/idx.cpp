// IDX: two zero bytes, a type code, the number of dimensions, each size as a big-endian u32, then the elements.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error.h"
#include "core/data/arrays/array.h"

namespace pmaptrain::data {
namespace {

struct Header {
  Element element = Element::u8;
  Shape shape;
  std::size_t header_bytes = 0;
  std::uint64_t data_bytes = 0;
};

constexpr std::size_t magic_bytes = 4;
constexpr std::size_t max_idx_rank = 8;

[[noreturn]] void fail_truncated(const std::string& path, std::string_view found) {
  fail_data(fmt::format("'{}' is truncated: {}", path, found), "copy or download it again");
}

std::optional<Element> element_of(unsigned code) {
  switch (code) {
    case 0x08: return Element::u8;
    case 0x09: return Element::i8;
    case 0x0b: return Element::i16;
    case 0x0c: return Element::i32;
    case 0x0d: return Element::f32;
    case 0x0e: return Element::f64;
    default: return std::nullopt;
  }
}

// The number of dimensions and the element type in the first four bytes.
std::pair<Element, std::size_t> parse_magic(const std::string& path, std::span<const std::byte> magic) {
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(magic[i]); };
  const std::optional<Element> element = element_of(at(2));
  const std::size_t rank = at(3);
  if (at(0) != 0 || at(1) != 0 || !element || rank == 0) {
    const bool numpy = (at(0) == 'P' && at(1) == 'K') || (at(0) == 0x93 && at(1) == 'N');
    fail_data(fmt::format("'{}' is not an IDX file: it begins with {:02x} {:02x} {:02x} {:02x}", path, at(0), at(1),
                          at(2), at(3)),
              numpy ? "it seems to be NumPy's: the source npz reads archives that numpy.savez writes"
                    : "expected 00 00, a type code (08 for bytes) and the number of dimensions, as MNIST's files have");
  }
  if (rank > max_idx_rank) {
    fail_data(fmt::format("'{}' has {} dimensions, at most {} are supported", path, rank, max_idx_rank));
  }
  return {*element, rank};
}

// `head` holds the magic and all sizes.
Header parse_header(const std::string& path, std::span<const std::byte> head) {
  const auto [element, rank] = parse_magic(path, head.first(magic_bytes));
  Header header;
  header.element = element;
  header.header_bytes = magic_bytes + 4 * rank;
  for (std::size_t i = 0; i < rank; ++i) {
    header.shape.push_back(static_cast<std::int64_t>(read_big(head, magic_bytes + 4 * i, 4)));
  }
  const std::optional<std::int64_t> bytes = checked_bytes(element, header.shape);
  if (!bytes) {
    fail_data(
        fmt::format("'{}' is damaged: its header has the shape {}, which is too large", path, to_string(header.shape)));
  }
  header.data_bytes = static_cast<std::uint64_t>(*bytes);
  return header;
}

std::string sizes(const Header& header) {
  return fmt::format("{}{} after a header of {} bytes needs {} bytes", name_of(header.element), to_string(header.shape),
                     header.header_bytes, header.header_bytes + header.data_bytes);
}

Array make(const std::string& path, Header header, Bytes data) {
  return {fmt::format("'{}'", path), header.element, true, std::move(header.shape), std::move(data)};
}

Array read_plain(const std::string& path, const Bytes& file) {
  const auto check = [&](std::size_t needed) {
    if (file.size() < needed) {
      fail_truncated(path, fmt::format("it has {} bytes, its header needs {}", file.size(), needed));
    }
  };
  check(magic_bytes);
  check(magic_bytes + 4 * parse_magic(path, file.view().first(magic_bytes)).second);
  Header header = parse_header(path, file.view());
  const std::uint64_t held = file.size() - header.header_bytes;
  if (held < header.data_bytes) fail_truncated(path, fmt::format("{}, it has {}", sizes(header), file.size()));
  if (held > header.data_bytes) {
    fail_data(fmt::format("'{}' is longer than its header says: {}, it has {}", path, sizes(header), file.size()));
  }
  const std::size_t start = header.header_bytes;
  return make(path, std::move(header), file.slice(start, static_cast<std::size_t>(held)));
}

Array read_compressed(const std::string& path, const Bytes& file) {
  Inflater inflater(file.view(), Compression::gzip, fmt::format("'{}'", path));
  std::array<std::byte, magic_bytes + 4 * max_idx_rank> head = {};
  const std::span<std::byte> all(head);
  const auto fill = [&](std::size_t from, std::size_t to) {
    const std::size_t got = from + inflater.read(all.subspan(from, to - from));
    if (got < to) fail_truncated(path, fmt::format("it holds {} bytes, its header needs {}", got, to));
  };
  fill(0, magic_bytes);
  const std::size_t header_bytes = magic_bytes + 4 * parse_magic(path, all.first(magic_bytes)).second;
  fill(magic_bytes, header_bytes);
  Header header = parse_header(path, all.first(header_bytes));

  const std::uint64_t limit = Inflater::limit(file.size());
  if (header.data_bytes > limit) {
    fail_truncated(
        path, fmt::format("{}, but {} compressed bytes cannot hold more than {}", sizes(header), file.size(), limit));
  }
  Memory memory = allocate(header_bytes + header.data_bytes, fmt::format("'{}'", path));
  const std::span<std::byte> elements = memory.view.subspan(header_bytes);
  if (inflate_whole(file.view(), memory.view))
    return make(path, std::move(header), Bytes(std::move(memory.owner), elements));
  const std::size_t got = inflater.read(elements);
  if (got < elements.size()) {
    fail_truncated(path, fmt::format("{}, it holds {}", sizes(header), header.header_bytes + got));
  }
  std::byte extra;
  if (inflater.read({&extra, 1}) != 0) {
    fail_data(fmt::format("'{}' is longer than its header says: {}, it holds more", path, sizes(header)));
  }
  return make(path, std::move(header), Bytes(std::move(memory.owner), elements));
}

}  // namespace

Array read_idx(const std::string& path) { return parse_idx(map_file(path), path); }

Array parse_idx(const Bytes& file, const std::string& path) {
  return is_gzip(file.view()) ? read_compressed(path, file) : read_plain(path, file);
}

}  // namespace pmaptrain::data
