// Equations on rows of features, which several layers share: matrices of several dimensions, and the layer norm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/graph/builder.h"
#include "core/onnx/graph.h"

namespace pmaptrain::model {

// x [..., C] times the kernel as a matrix [C, n], plus the bias [n] before the sum is rounded: [..., n]. The kernel is
// cast to the type of x.
Value product_of_rows(Builder& b, Value x, Value kernel, Shape matrix, std::optional<Value> bias);

// (x - mean) / √(variance + epsilon) over the last dimension, in the type of x.
Value layer_normalised(Builder& b, Value x, double epsilon);
onnx::Value layer_normalised(onnx::Graph& graph, const std::string& x, std::int64_t rank, double epsilon);

// The numbers that divide `number`, for errors: "1, 2, 3, 6".
std::string divisors_of(std::int64_t number);

}  // namespace pmaptrain::model
