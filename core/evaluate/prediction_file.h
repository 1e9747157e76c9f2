// Files of predictions: CSV, NPY or NPZ, according to their names.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "core/evaluate/predictor.h"

namespace pmaptrain::evaluate {

// Takes predictions row by row. The file appears when it is complete; an incomplete file is removed.
class PredictionWriter {
 public:
  virtual ~PredictionWriter() = default;
  // Writes rows of Predictions::row_bytes() bytes after the previous ones. Throws Error (failed).
  virtual void write(std::span<const std::byte> rows) = 0;
  virtual void finish() = 0;
};

// Whether the format of a file is known by its name: its ending is .csv, .npy or .npz.
bool is_prediction_file(const std::string& path);

// CSV: a header, then a line for each example: the columns that are passed through (for images, the name of the file),
// then the predictions, with classes by name. Numbers have the fewest digits that read back as the same f32.
//
// NPY, and the array "predictions" of an NPZ: [examples, shape...], f32, or i64 for classes by number. The standard
// deviations over several members are columns "std" in CSV and the array "standard_deviations" in an NPZ; an NPY does
// not have them. An NPZ is held in memory until it is complete; the other formats are written batch by batch. Files
// that a killed process left here are removed.
//
// `predictions` outlives the file. Throws Error: failed, or resource.
std::unique_ptr<PredictionWriter> open_prediction_file(const std::string& path, const Predictions& predictions);

// The names of the columns of CSV, in their order.
std::vector<std::string> csv_columns(const Predictions& predictions);

// The stream takes no more. Whether that is a failure, who opened the stream knows: a reader that went away is none.
struct StreamRefused {};
// Writes CSV to a stream, which outlives this. Its functions throw StreamRefused once the stream has failed.
std::unique_ptr<PredictionWriter> open_prediction_stream(std::ostream& stream, const Predictions& predictions);

}  // namespace pmaptrain::evaluate
