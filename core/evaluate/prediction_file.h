// Files of predictions: CSV, NPY or NPZ, as their names say.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <string>

#include "core/evaluate/predictor.h"

namespace pmaptrain::train {

// Takes predictions, row after row. The file takes its place when it is whole; a file that is never finished is
// removed.
class PredictionFile {
 public:
  virtual ~PredictionFile() = default;
  // Whole rows of Predictions::row_bytes(), after those that were written before. Throws Error (failed).
  virtual void write(std::span<const std::byte> rows) = 0;
  virtual void finish() = 0;
};

// Whether a file of this name can be written: its ending is .csv, .npy or .npz.
bool is_prediction_file(const std::string& path);

// CSV: a header, then a line for each example: columns that are passed through, of images the name of the file, then
// the predictions, classes by name.
// Numbers have the fewest digits that read back as the same f32.
// NPY, and the array "predictions" of an NPZ: [examples, shape...], f32, or i64 of classes by number. The standard
// deviations of several members' values are columns "std" of CSV, the array "standard_deviations" of an NPZ, and not in
// an NPY. An NPZ is held in memory until it is finished; the others are written as they come. What a process left here
// that was killed is removed.
//
// `predictions` outlives the file. Throws Error: failed, or resource.
std::unique_ptr<PredictionFile> open_prediction_file(const std::string& path, const Predictions& predictions);

// CSV on a stream, which outlives this. Throws Error (failed) where the stream takes no more.
std::unique_ptr<PredictionFile> open_prediction_stream(std::ostream& stream, const Predictions& predictions);

}  // namespace pmaptrain::train
