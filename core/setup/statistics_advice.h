// The values behind the statistics of batch_norm, and what is wrong with too few of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/setup/initialize.h"
#include "core/setup/setup.h"

namespace pmaptrain::setup {

// The values of one channel that a node takes a mean and a variance of: rows times positions.
struct ValuesBehind {
  std::int64_t rows = 1;       // of a microbatch, on all devices along the axes of the node
  std::int64_t positions = 1;  // of an example
  std::vector<std::string> nodes;

  std::int64_t count() const { return rows * positions; }
};

// One for each distinct size, in the order of the model; empty if the model has no statistics.
std::vector<ValuesBehind> values_behind_statistics(const Setup& setup);

// Throws Error (usage) at a node with fewer than 2 values behind a statistic.
void check_statistics(const Setup& setup);

// Warnings: fewer than 16 values behind a statistic; a momentum below 0.5; running statistics that mostly are still
// their initial values at the first evaluation, if these were not taken from a trained model.
std::vector<std::string> doubtful_statistics(const Setup& setup, const InitialValues& initial);

}  // namespace pmaptrain::setup
