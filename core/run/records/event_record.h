// The records of TensorBoard's event files: an Event of tensorflow/core/util/event.proto in the frame of a TFRecord.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace pmaptrain::run {

// A tag ("train/loss") and its value, which may be NaN or infinite. The file holds it as f32.
using Scalar = std::pair<std::string, double>;

// Encoded events in their frames. Times are in seconds since 1970.
std::string version_record(double wall_time);  // the first record of every file
// Tells readers to forget what earlier files contain for `step` and later steps.
std::string restart_record(double wall_time, std::int64_t step);
std::string scalars_record(double wall_time, std::int64_t step, std::span<const Scalar> scalars);

// The length of the first record in `bytes`, from its frame. If `bytes` is shorter than a frame, or than the record,
// returns the length of `bytes`.
std::size_t record_bytes(std::string_view bytes);

}  // namespace pmaptrain::run
