// Examples of image data sets as pictures in a page.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/data/dataset.h"

namespace pmaptrain::report {

// "data:image/png;base64,...": the image of an example, [height, width, channels], made smaller until neither side is
// above `most_side`. Channels of floats are scaled from the smallest to the largest value of the image. A fourth
// channel is left out.
std::string picture_uri(const data::Field& field, std::span<const std::byte> example, std::int64_t most_side);

}  // namespace pmaptrain::report
