// The local shape of a value: the sizes of its dimensions, outermost first (row-major).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pmaptrain {

using Shape = std::vector<std::int64_t>;

// The number of elements; 1 for a scalar.
std::int64_t numel(const Shape& shape);

// "[16,10]"; "[]" for a scalar.
std::string to_string(const Shape& shape);

}  // namespace pmaptrain
