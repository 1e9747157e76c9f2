// Inputs for a model that has been trained: examples without targets, in a file of any format.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/tables/table.h"
#include "core/spec/spec.h"

namespace pmaptrain::input {

struct PredictionFile {
  std::string path;
  std::optional<std::string> array;  // of an archive with several
  std::vector<std::string> ids;      // of a table, the columns whose texts are passed through
  Place place = {};                  // of the option that names the file, for errors
};

struct PredictionInput {
  std::shared_ptr<const data::Dataset> dataset;  // in the order of the file; file_of() names images
  std::vector<std::string> notes;                // "inputs are f64 and become f32"
  std::vector<data::TextColumn> ids;             // one for each of PredictionFile::ids, of all rows
  std::vector<data::SkippedRow> skipped;         // with `on_error: skip`, rows and files that are not in the dataset
};

// Opens an NPZ, NPY, IDX (plain or gzip) or CSV file, an image, or a folder of images; the content determines the
// format. Checks that the examples fit the model: `trained` is the input that it was trained on, `known` the encoding
// of its checkpoint, `spec` the data of its run. Throws Error (data), placed at the option.
//
// From an archive with several arrays, reads the one that `array` names, or that the run's npz source names. Bytes and
// floats are never converted into each other, because the scale is unknown: 255 could mean 255 or 1.
PredictionInput open_prediction_input(const PredictionFile& file, const spec::DataSpec& spec, const Field& trained,
                                      const data::Encoding& known);

}  // namespace pmaptrain::input
