// Examples of image data sets as pictures in a page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/data/dataset.h"

namespace pmaptrain::report {

// "data:image/png;base64,...": the image of an example, [height, width, channels], made smaller until neither side is
// above `most_side`. Channels of floats are scaled from the smallest to the largest value of the image. A fourth
// channel is left out.
std::string picture_uri(const data::Field& field, std::span<const std::byte> example, std::int64_t most_side);

// The same of the classes of pixels, row by row: each class has a colour, 0 black, and what is none of `classes` white.
std::string map_uri(std::span<const std::int32_t> labels, const Shape& map, std::size_t classes,
                    std::int64_t most_side);
// The colour of a class there: "#800000".
std::string color_of_class(std::size_t label);

}  // namespace pmaptrain::report
