// What a config or its data allow, and what trains badly without any error.
#pragma once

#include <string>
#include <vector>

#include "core/train/setup.h"

namespace pmaptrain::train {

// " (cnn.yaml:12:7)"; empty for a place without a line.
std::string in_parentheses(const Place& place);

// One sentence for each likely mistake: a mesh of one device, a softmax before a loss that takes logits, images whose channels come first,
// a duration that was probably meant in epochs, a batch of more than half of the training split.
std::vector<std::string> likely_mistakes(const Setup& setup);

}  // namespace pmaptrain::train
