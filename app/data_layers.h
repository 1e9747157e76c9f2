// The layers of a config that `init` writes, and what else arrays may mean.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/shape.h"
#include "core/data/dataset.h"
#include "core/spec/data.h"

namespace pmaptrain::app {

// Lines of YAML: layers from these inputs to `outputs` numbers, or to the targets' shape where that has more than one
// dimension. `what` is a comment on the outputs.
std::string layers_for(const Shape& input, const Shape& target, std::int64_t outputs, const std::string& what);

// Lines for sequences of different lengths, [T,C], to `outputs` numbers.
std::string sequence_layers(std::int64_t outputs, const std::string& what);
// Lines of a U-Net from images to `outputs` numbers at each pixel. Heights and widths are multiples of 4.
std::string unet_layers(const Shape& input, std::int64_t outputs, const std::string& what);

// A label map has at most so many classes; numbers of more kinds are rather those of a picture.
inline constexpr std::int64_t most_classes_of_pixels = 64;
// Of a label map in which 255 stands far above the others, because it marks pixels without a class: how many classes
// there are. None for others.
std::optional<std::int64_t> classes_beside_255(const data::Dataset& train);

// A comment on `channels`: what it makes of inputs, whose examples have this shape, and what the others would, where
// there is a choice.
std::string choices_of_channels(data::Channels channels, const Shape& input, bool is_choice);

// What the arrays, integers and whole numbers of an archive may be as well, and how to get that: "; if ..." or empty.
// What inputs are is open but for those of different lengths.
std::string hints_on_arrays(const data::Dataset& train, bool is_regression, bool are_inputs_open);

// How targets that may be counts are trained as such: "; as counts: ..." or empty.
std::string hint_on_counts(const data::Dataset& train);

}  // namespace pmaptrain::app
