// NPY: a magic, a version, the length of a header, the header as the text of a Python dictionary, then the elements.
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/data/arrays/array.h"

namespace pmaptrain::data {
namespace {

constexpr std::size_t max_header = npy_head_bytes - 12;
constexpr std::size_t max_npy_rank = 32;  // NumPy's own limit

// Reads the dictionary, which has exactly the keys 'descr', 'fortran_order' and 'shape'.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  struct Header {
    std::optional<std::string> descr;
    std::optional<bool> fortran_order;
    std::optional<Shape> shape;
  };

  Header parse() {
    Header header;
    expect('{');
    while (!take('}')) {
      const std::string key = parse_string();
      expect(':');
      if (key == "descr" && !header.descr) {
        if (peek() == '[') {
          fail_data(fmt::format("{} has a structured dtype, expected plain numbers", name_),
                    "save each field as a separate array");
        }
        header.descr = parse_string();
      } else if (key == "fortran_order" && !header.fortran_order) {
        header.fortran_order = parse_boolean();
      } else if (key == "shape" && !header.shape) {
        header.shape = parse_shape();
      } else {
        fail(fmt::format("unknown or duplicate key '{}'", key));
      }
      if (!take(',') && peek() != '}') fail("expected ',' or '}'");
    }
    if (peek() != '\0' || at_ != text_.size()) fail("there is text after its '}'");
    if (!header.descr || !header.fortran_order || !header.shape) {
      fail("it lacks 'descr', 'fortran_order' or 'shape'");
    }
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    fail_data(fmt::format("{} has an NPY header that cannot be read: {}", name_, what),
              "write it again with numpy.save");
  }
  // The next character that is not white space; '\0' at the end.
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (at_ >= text_.size() && peek() == '\0') return false;
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("expected '{}'", c));
  }
  std::string parse_string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("expected a quoted name");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a quote is not closed");
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }
  bool parse_boolean() {
    peek();
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {std::string_view("False"), false}}) {
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    }
    fail("'fortran_order' is neither True nor False");
  }
  Shape parse_shape() {
    Shape shape;
    expect('(');
    while (!take(')')) {
      peek();
      std::int64_t size = 0;
      const char* const first = text_.data() + at_;
      const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), size);
      if (error == std::errc::result_out_of_range) fail("a size in 'shape' is too large");
      if (error != std::errc() || size < 0) fail("'shape' is not a tuple of sizes");
      at_ += static_cast<std::size_t>(end - first);
      take('L');  // Python 2 wrote long integers so
      shape.push_back(size);
      if (shape.size() > max_npy_rank) fail(fmt::format("'shape' has more than {} dimensions", max_npy_rank));
      if (!take(',') && peek() != ')') fail("'shape' is not a tuple of sizes");
    }
    return shape;
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
};

// "<f4": byte order, kind, size. NumPy, which has no bfloat16, writes the one of ml_dtypes as two bytes of any kind.
std::pair<Element, bool> parse_descr(const std::string& descr, const std::string& name) {
  constexpr std::pair<std::string_view, Element> known[] = {
      {"b1", Element::boolean}, {"u1", Element::u8},  {"i1", Element::i8},  {"u2", Element::u16}, {"i2", Element::i16},
      {"u4", Element::u32},     {"i4", Element::i32}, {"u8", Element::u64}, {"i8", Element::i64}, {"V2", Element::bf16},
      {"f2", Element::f16},     {"f4", Element::f32}, {"f8", Element::f64}};
  if (descr.size() == 3 && std::string_view("<>|=").find(descr[0]) != std::string_view::npos) {
    for (const auto& [code, element] : known) {
      if (code == std::string_view(descr).substr(1)) return {element, descr[0] == '>'};
    }
  }
  std::string_view help =
      "expected booleans, integers of 1 to 8 bytes, float16, bfloat16 (of ml_dtypes), float32 or float64";
  if (descr.find('O') != std::string::npos)
    help = "Python objects are not supported: save numbers, with allow_pickle=False";
  if (descr.find_first_of("US") != std::string::npos)
    help = "texts are not supported: names, labels = np.unique(labels, return_inverse=True) numbers them";
  fail_data(fmt::format("{} has dtype '{}', which is not supported", name, descr), std::string(help));
}

// Moves a tile of [rows, columns]: `from` has the rows next to each other in memory, `to` the columns.
template <std::size_t size>
void transpose_tile(const std::byte* from, std::size_t from_stride, std::byte* to, std::size_t to_stride,
                    std::size_t rows, std::size_t columns) {
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      std::memcpy(to + r * to_stride + c * size, from + c * from_stride + r * size, size);
    }
  }
}

// Counts through the indices of the dimensions but the first and the last, the last of them fastest, and knows the
// place of each in Fortran order.
class Planes {
 public:
  explicit Planes(const Shape& shape) {
    for (std::size_t d = 1; d + 1 < shape.size(); ++d) {
      sizes_.push_back(static_cast<std::size_t>(shape[d]));
      strides_.push_back(count_);
      count_ *= sizes_.back();
    }
    index_.resize(sizes_.size());
  }
  std::size_t count() const { return count_; }
  std::size_t place() const { return place_; }
  // After the last comes the first again.
  void next() {
    for (std::size_t d = sizes_.size(); d-- > 0;) {
      place_ += strides_[d];
      if (++index_[d] < sizes_[d]) return;
      place_ -= strides_[d] * sizes_[d];
      index_[d] = 0;
    }
  }

 private:
  std::vector<std::size_t> sizes_, strides_, index_;
  std::size_t count_ = 1, place_ = 0;
};

// The elements of an array in Fortran order, whose first index is the fastest, in row-major order. The planes of its
// first and last index are transposed in tiles that fit a cache.
template <std::size_t size>
void to_row_major(const std::byte* from, std::byte* to, const Shape& shape) {
  constexpr std::size_t tile = 64;
  const auto rows = static_cast<std::size_t>(shape.front()), columns = static_cast<std::size_t>(shape.back());
  Planes planes(shape);
  const std::size_t from_stride = planes.count() * rows * size, to_stride = planes.count() * columns * size;
  for (std::size_t r = 0; r < rows; r += tile) {
    for (std::size_t plane = 0; plane < planes.count(); ++plane, planes.next()) {
      for (std::size_t c = 0; c < columns; c += tile) {
        transpose_tile<size>(from + (planes.place() * rows + r) * size + c * from_stride, from_stride,
                             to + r * to_stride + (plane * columns + c) * size, to_stride, std::min(tile, rows - r),
                             std::min(tile, columns - c));
      }
    }
  }
}

Bytes to_row_major(const Bytes& elements, const NpyHead& head, const std::string& name) {
  Memory memory = allocate(elements.size(), name);
  const std::byte* const from = elements.data();
  std::byte* const to = memory.view.data();
  switch (size_of(head.element)) {
    case 1: to_row_major<1>(from, to, head.shape); break;
    case 2: to_row_major<2>(from, to, head.shape); break;
    case 4: to_row_major<4>(from, to, head.shape); break;
    default: to_row_major<8>(from, to, head.shape); break;
  }
  elements.check_intact();
  return {std::move(memory.owner), memory.view};
}

}  // namespace

NpyHead check_npy_head(std::span<const std::byte> view, std::uint64_t size, const std::string& name) {
  assert(view.size() == size || (view.size() < size && view.size() >= npy_head_bytes));
  constexpr std::string_view magic = "\x93NUMPY";
  const auto text = [&](std::size_t from, std::size_t count) {
    return std::string_view(reinterpret_cast<const char*>(view.data()) + from, count);
  };
  if (view.size() >= 4 && text(0, 4) == "PK\3\4") {
    fail_data(fmt::format("{} is an archive of arrays (NPZ), expected one array in NPY format", name),
              "load it with numpy.load, and write the array with numpy.save");
  }
  if (view.size() < magic.size() || text(0, magic.size()) != magic) {
    fail_data(fmt::format("{} is not in NPY format: it does not begin with \\x93NUMPY", name),
              "write it with numpy.save, numpy.savez or numpy.savez_compressed");
  }
  const auto check = [&](std::size_t needed, std::string_view what) {
    if (view.size() < needed) {
      fail_data(fmt::format("{} is truncated: {} needs {} bytes, it has {}", name, what, needed, view.size()),
                "copy or download it again");
    }
  };
  check(magic.size() + 2, "its version");
  const auto major = std::to_integer<unsigned>(view[magic.size()]);
  if (major < 1 || major > 3) {
    fail_data(fmt::format("{} has NPY format version {}, expected 1, 2 or 3", name, major));
  }
  const std::size_t length_at = magic.size() + 2;
  const std::size_t length_size = major == 1 ? 2 : 4;
  check(length_at + length_size, "the length of its header");
  const auto length = static_cast<std::size_t>(read_little(view, length_at, length_size));
  if (length > max_header) {
    fail_data(fmt::format("{} has a header of {} bytes, more than {}", name, length, max_header),
              "write it again with numpy.save");
  }
  const std::size_t header_end = length_at + length_size + length;
  check(header_end, "its header");

  const auto header = HeaderParser(text(length_at + length_size, length), name).parse();
  const auto [element, big_endian] = parse_descr(*header.descr, name);
  const Shape& shape = *header.shape;
  // With at most one dimension of size other than 1, both orders are the same bytes.
  const auto wide = std::count_if(shape.begin(), shape.end(), [](std::int64_t n) { return n != 1; });
  const std::optional<std::int64_t> needed = checked_bytes(element, shape);
  if (!needed) {
    fail_data(fmt::format("{} is damaged: its shape {} is too large", name, to_string(shape)));
  }
  const std::uint64_t held = size - header_end;
  const auto wanted = static_cast<std::uint64_t>(*needed);
  if (held != wanted) {
    fail_data(fmt::format("{} is {}: {}{} needs {} bytes after its header, it has {}", name,
                          held < wanted ? "truncated" : "longer than its header says", name_of(element),
                          to_string(shape), wanted, held),
              "copy or download it again");
  }
  return {element, big_endian, *header.fortran_order && wide > 1, shape, header_end};
}

Array parse_npy(const Bytes& bytes, std::string name) {
  NpyHead head = check_npy_head(bytes.view(), bytes.size(), name);
  Bytes elements = bytes.slice(head.bytes, bytes.size() - head.bytes);
  if (head.fortran && elements.size() > 0) elements = to_row_major(elements, head, name);
  return {std::move(name), head.element, head.big_endian, std::move(head.shape), std::move(elements)};
}

Array read_npy(const std::string& path) { return parse_npy(map_file(path), fmt::format("'{}'", path)); }

}  // namespace pmaptrain::data
