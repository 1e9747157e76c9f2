// A dataset of two arrays, inputs and targets, whose first dimension is the example.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/data/arrays/array.h"
#include "core/data/dataset.h"

namespace pmaptrain::data {

// Inputs: u8 stays u8, all other types become f32. An array (N) gives examples of shape [1], (N,H,W) gives [H,W,1].
// Targets: integers of shape (N) or (N,1) become i32 labels; floating-point targets become f32, and (N) gives [1];
// integers of shape (N,C) become f32[C] (one-hot rows).
// Conversions that may lose precision add a note to `notes`. Throws Error (data) if the numbers of examples differ, an
// array is empty, a number is NaN or infinite, or overflows f32, or a label 32 bits. `place` is the place of the files
// in the config, for errors during reading. With `numeric`, integers of shape (N) or (N,1) are numbers too: f32[1].
std::shared_ptr<const Dataset> make_dataset(Array inputs, const Array& targets, std::vector<std::string>& notes,
                                            const Place& place = {}, bool numeric = false);

// Makes a dataset of inputs without targets.
std::shared_ptr<const Dataset> make_inputs(Array inputs, std::vector<std::string>& notes, const Place& place = {});

// Inputs and targets from rows of numbers. Throws Error (data) if there are no rows, rows are empty or differ in
// length, or the numbers of examples differ.
std::shared_ptr<const Dataset> make_dataset(const std::vector<std::vector<double>>& inputs,
                                            const std::vector<std::vector<double>>& targets);

}  // namespace pmaptrain::data
