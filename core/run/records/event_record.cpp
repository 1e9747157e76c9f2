#include "core/run/records/event_record.h"

#include <bit>
#include <cstring>

#include "core/base/crc32c.h"
#include "core/base/protobuf.h"

namespace pmaptrain::run {
namespace {

using namespace protobuf;

// The frame of a TFRecord: the length of the data, a checksum of the length, the data, a checksum of the data.
constexpr std::size_t length_bytes = 8, checksum_bytes = 4, frame_bytes = length_bytes + 2 * checksum_bytes;

// Rotated and offset, so that a checksum of data that contains checksums is still useful.
std::uint32_t masked(std::uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8U; }

// Little-endian.
template <class T>
void append(std::string& to, T value) {
  static_assert(std::endian::native == std::endian::little);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  to.append(bytes, sizeof value);
}

std::string framed(std::string_view data) {
  std::string record;
  record.reserve(data.size() + frame_bytes);
  append(record, std::uint64_t{data.size()});
  append(record, masked(crc32c(record)));
  record += data;
  append(record, masked(crc32c(data)));
  return record;
}

// Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; SessionLog session_log =
// 7; }
constexpr std::uint32_t wall_time_field = 1, step_number_field = 2, file_version_field = 3, summary_field = 5,
                        session_log_field = 7;
// Summary { message Value { string tag = 1; float simple_value = 2; } repeated Value value = 1; }
constexpr std::uint32_t value_field = 1, tag_field = 1, simple_value_field = 2;
// SessionLog { enum SessionStatus { START = 1; } SessionStatus status = 1; }
constexpr std::uint32_t status_field = 1, status_start = 1;

std::string event_at(double wall_time, std::int64_t step) {
  std::string event;
  append_double(event, wall_time_field, wall_time);
  if (step != 0) append_integer(event, step_number_field, step);
  return event;
}

}  // namespace

std::string version_record(double wall_time) {
  std::string event = event_at(wall_time, 0);
  append_bytes(event, file_version_field, "brain.Event:2");
  return framed(event);
}

std::string restart_record(double wall_time, std::int64_t step) {
  std::string session_log;
  append_integer(session_log, status_field, status_start);
  std::string event = event_at(wall_time, step);
  append_bytes(event, session_log_field, session_log);
  return framed(event);
}

std::string scalars_record(double wall_time, std::int64_t step, std::span<const Scalar> scalars) {
  std::string summary;
  for (const auto& [tag, number] : scalars) {
    std::string value;
    append_bytes(value, tag_field, tag);
    append_float(value, simple_value_field, static_cast<float>(number));
    append_bytes(summary, value_field, value);
  }
  std::string event = event_at(wall_time, step);
  append_bytes(event, summary_field, summary);
  return framed(event);
}

std::size_t record_bytes(std::string_view bytes) {
  if (bytes.size() < frame_bytes) return bytes.size();
  std::uint64_t data = 0;
  std::memcpy(&data, bytes.data(), sizeof data);
  return data > bytes.size() - frame_bytes ? bytes.size() : data + frame_bytes;
}

}  // namespace pmaptrain::run
