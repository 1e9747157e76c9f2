// Predicted label maps as PNG files.
#pragma once

#include <memory>
#include <string>

#include "core/evaluate/prediction_file.h"

namespace pmaptrain::evaluate {

// Whether predictions are a class for each pixel, so that a PNG file can hold those of an example.
bool are_masks(const Predictions& predictions);

// A PNG file for each example, of the size of its image (of the predictions where inputs are no files), whose pixels
// are indices of classes into a palette: NAME.png for the image NAME.jpg, else 0000.png, 0001.png, ... Makes the
// folder. A file appears when it is complete; those of examples that were written before an error stay. `predictions`
// outlives the writer. Throws Error: failed, or data for two images of one name or more than 256 classes.
std::unique_ptr<PredictionWriter> open_mask_folder(const std::string& folder, const Predictions& predictions);

}  // namespace pmaptrain::evaluate
