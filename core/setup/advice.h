// What a config or its data allow, and what trains badly without any error.
#pragma once

#include <string>
#include <vector>

#include "core/setup/setup.h"

namespace pmaptrain::train {

// " (cnn.yaml:12:7)"; empty for a place without a line.
std::string in_parentheses(const Place& place);

// How far targets, taken as numbers, are from 0: the larger of the magnitude of their mean and their standard
// deviation, of up to 10,000 examples.
double target_scale(const data::Dataset& dataset);

// That examples of this shape look like images whose channels come first; empty where they do not. Images are (height,
// width, channels).
std::string channels_first(const Shape& input);

// One sentence for each likely mistake: a mesh of one device, a softmax before a loss that takes logits, images whose
// channels come first, measured numbers that are taken as categories, a duration that was probably meant in epochs, a
// batch of more than half of the training split, targets that the learning rate does not reach, inputs whose mean or
// standard deviation is above 10 and that nothing normalises.
std::vector<std::string> likely_mistakes(const Setup& setup);

}  // namespace pmaptrain::train
