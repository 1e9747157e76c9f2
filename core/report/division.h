// What parallelism.tensor divides of a model, and what it leaves whole.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/setup/setup.h"

namespace pmaptrain::report {

struct DivisionReport {
  std::string axis;
  std::int64_t devices = 0;              // along the axis
  std::int64_t parameters = 0;           // of a device
  double flops = 0, flops_of_whole = 0;  // of a step: of all devices along the axis; of work that each of them does
};

// None without parallelism.tensor.
std::optional<DivisionReport> division_of(const setup::Setup& setup);
// How devices divide a layer: "by columns", "by heads", "whole: no layer to pair it with". Empty for a layer that has
// nothing to divide.
std::string division_text(const model::Node& layer);
// A paragraph; empty without parallelism.tensor.
std::string division_text(const setup::Setup& setup);

}  // namespace pmaptrain::report
