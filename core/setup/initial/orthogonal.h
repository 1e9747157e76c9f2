// Random matrices with orthogonal columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/philox.h"

namespace pmaptrain::setup {

// A matrix [rows, columns], row-major, whose columns are orthonormal; its rows, if these are fewer. It is uniformly
// distributed among these: the factor Q of a matrix of standard normals, where R has a positive diagonal, as in
// jax.nn.initializers.orthogonal. Takes rows * columns * min(rows, columns) operations.
std::vector<double> orthogonal(PhiloxKey key, std::int64_t rows, std::int64_t columns);

// The memory that orthogonal() takes, with its result.
std::size_t orthogonal_bytes(std::int64_t rows, std::int64_t columns);

}  // namespace pmaptrain::setup
