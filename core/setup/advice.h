// Warnings about configs and data that are valid but train badly.
#pragma once

#include <string>
#include <vector>

#include "core/setup/setup.h"

namespace pmaptrain::setup {

// " (cnn.yaml:12:7)"; empty for a place without a line.
std::string in_parentheses(const Place& place);

// A warning if examples of this shape look like images with the channels first; else empty. The layout of images is
// (height, width, channels).
std::string channels_first_warning(const Shape& input);

// Returns one sentence for each likely mistake: a mesh of one device, a softmax before a loss that takes logits, a
// model of texts that sees what it is to predict, images with the channels first, measured numbers that are read as
// categories, a mode that takes the worst values of a metric for the best, a duration that was probably meant in
// epochs, a batch of more than half of the training split, targets far from the outputs of a new model, and inputs with
// a mean or standard deviation above 10 that are not normalised. Throws Error (data) for numbers of a column that are
// all one in float32.
std::vector<std::string> likely_mistakes(const Setup& setup);

// Of these, what a run of an older version that is resumed was not told when it began. Such a run goes on as it is, so
// what a new run is refused for is a warning.
std::vector<std::string> mistakes_of_older_versions(const Setup& setup);

}  // namespace pmaptrain::setup
