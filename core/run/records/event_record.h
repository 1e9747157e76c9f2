// The records of TensorBoard's event files: an Event of tensorflow/core/util/event.proto in the frame of a TFRecord.
#pragma once

#include <cstddef>
#include <cstdint>
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

// The length of the record that `bytes` begin with, by its frame; that of all bytes where they are less than a record.
std::size_t record_bytes(std::string_view bytes);

}  // namespace pmaptrain::train
