// The records of TensorBoard's event files: an Event of tensorflow/core/util/event.proto in the frame of a TFRecord.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace pmaptrain::train {

// A tag ("train/loss") and its value, which the file holds as f32; it may be NaN or infinite.
using Scalar = std::pair<std::string, double>;

// Encoded events, in their frames. Times are in seconds since 1970.
std::string version_record(double wall_time);  // which every file begins with
// Whoever reads it forgets what earlier files say of `step` and later steps.
std::string restart_record(double wall_time, std::int64_t step);
std::string scalars_record(double wall_time, std::int64_t step, std::span<const Scalar> scalars);

// The bytes of the record that `bytes` begins with, by its frame; all of them where they are less than a frame or the
// frame is of more.
std::size_t record_bytes(std::string_view bytes);

// The record that `bytes` begins with. None for what is no whole record of a message with the right checksums.
struct RecordAt {
  std::int64_t step = 0;  // 0 where it names none
  std::string tag;        // of its first scalar; empty: it has none
  std::size_t bytes = 0;  // of the record
};
std::optional<RecordAt> read_record(std::string_view bytes);

}  // namespace pmaptrain::train
