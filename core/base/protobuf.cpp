#include "core/base/protobuf.h"

#include <bit>
#include <cstring>

namespace pmaptrain::protobuf {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

enum Wire : std::uint8_t { varint = 0, eight_bytes = 1, counted_bytes = 2, four_bytes = 5 };

void append_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}

void append_key(std::string& to, std::uint32_t field, Wire wire) { append_varint(to, field << 3 | wire); }

template <class T>
void append_number(std::string& to, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  to.append(bytes, sizeof value);
}

}  // namespace

void append_integer(std::string& message, std::uint32_t field, std::int64_t value) {
  append_key(message, field, varint);
  append_varint(message, static_cast<std::uint64_t>(value));
}

void append_float(std::string& message, std::uint32_t field, float value) {
  append_key(message, field, four_bytes);
  append_number(message, value);
}

void append_double(std::string& message, std::uint32_t field, double value) {
  append_key(message, field, eight_bytes);
  append_number(message, value);
}

void append_bytes(std::string& message, std::uint32_t field, std::string_view bytes) {
  append_head(message, field, bytes.size());
  message += bytes;
}

void append_head(std::string& message, std::uint32_t field, std::uint64_t bytes) {
  append_key(message, field, counted_bytes);
  append_varint(message, bytes);
}

}  // namespace pmaptrain::protobuf
