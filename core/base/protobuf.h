// The wire format of protocol buffers: a message is a sequence of fields, and a field is its number with the kind of
// its value, then the value. A field that a message lacks has the value 0, or is empty.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pmaptrain::protobuf {

// int64, int32, bool and enumerations
void append_integer(std::string& message, std::uint32_t field, std::int64_t value);
void append_float(std::string& message, std::uint32_t field, float value);
void append_double(std::string& message, std::uint32_t field, double value);
// Texts, bytes and messages.
void append_bytes(std::string& message, std::uint32_t field, std::string_view bytes);
// What precedes the bytes of such a field.
void append_head(std::string& message, std::uint32_t field, std::uint64_t bytes);

}  // namespace pmaptrain::protobuf
