// The inputs or the targets of one example, and their statistics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/shape.h"

namespace pmaptrain {

// Element type and shape, without the example dimension.
struct Field {
  DType dtype = DType::f32;
  Shape shape;
  std::string origin = {};  // for messages: "array 'y' of 'file'"; empty if not from a file
  std::string stored = {};  // "i64", where the file has integers, which are read as numbers of f32; else empty
  std::int64_t tokens = 0;  // where these are tokens: how many kinds there are, as of bytes 256; 0 if that is unknown
  std::size_t bytes() const { return size_of(dtype) * static_cast<std::size_t>(numel(shape)); }
};

// The label at positions behind those of a sequence: no class, and ignored.
inline constexpr std::int64_t label_of_padding = -1;

// One mean and one standard deviation for each channel, column or number.
struct FieldStatistics {
  std::vector<double> mean, std;
  friend bool operator==(const FieldStatistics&, const FieldStatistics&) = default;
};

}  // namespace pmaptrain
