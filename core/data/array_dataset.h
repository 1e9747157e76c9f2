// A dataset of two arrays, one of inputs and one of targets, whose first dimensions count the examples.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/data/array.h"
#include "core/data/dataset.h"

namespace pmaptrain::data {

// Inputs: u8 stays u8, every other type becomes f32. (N) becomes [1] an example, (N,H,W) becomes [H,W,1].
// Targets: integers of shape (N) or (N,1) become i32 labels; what has a floating type becomes f32, and (N) becomes [1]
// an example; integers of shape (N,C) become f32[C] (one-hot rows).
// Conversions that may lose digits are told once, in `notes`. Throws Error (data) when the counts differ, an array is
// empty, a number does not fit f32 or a label 32 bits. `place` is where the config names the files, for what is found
// later.
std::shared_ptr<const Dataset> make_dataset(Array inputs, Array targets, std::vector<std::string>& notes,
                                            const Place& place = {});

// The same from rows of numbers. Throws Error (data) for no rows, empty or ragged rows, and counts that differ.
std::shared_ptr<const Dataset> make_dataset(const std::vector<std::vector<double>>& inputs,
                                            const std::vector<std::vector<double>>& targets);

}  // namespace pmaptrain::data
