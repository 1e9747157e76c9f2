// The values that a parameter of a sweep takes: {choice: [1, 2]}, {log_uniform: [0.001, 0.1]}.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/spec/sweep.h"
#include "core/spec/yaml/node.h"
#include "core/spec/yaml/report.h"

namespace pmaptrain::spec {

struct ReadParameter {
  SweepParameter parameter;
  std::vector<Node> values;  // of choice and range; else the bounds, as one list
  bool free = false;         // whether the values are maps of keys, under a free name
};

// Nothing after reporting an error.
std::optional<ReadParameter> read_parameter(const Node& key, const Node& value, const Reporter& reporter);

// The key of a kind of values: "log_uniform".
std::string to_string(Space space);

// A range, and a grid, has at most so many values.
inline constexpr std::int64_t most_trials = 100'000;

}  // namespace pmaptrain::spec
