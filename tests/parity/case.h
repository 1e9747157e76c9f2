// The cases that make_fixtures.py wrote, on any backend: what JAX has, what a run has, and where they differ.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/run/files/safetensors.h"

namespace pmaptrain::parity {

inline const std::filesystem::path folder = "tests/parity";

inline constexpr std::size_t steps = 20;

using Names = std::vector<std::string>;

struct Layout {
  std::size_t devices;
  std::string axes;
  int microbatches;
};

Names listed_cases();

struct Case {
  std::string name;
  std::map<std::string, std::vector<double>> measures;  // by step
  train::Tensors first_step;
  train::Tensors ema;  // after the last step; none for most cases
};

Case read_case(const std::string& name);

struct Run {
  std::map<std::string, std::vector<double>> measures;
  std::vector<std::map<std::string, std::vector<double>>> first_step;  // by device
  std::map<std::string, std::vector<double>> ema;                      // after the last step
};

// The session is of the case's config with these keys set.
Run train_case(const std::string& name, const Layout& layout, Names set = {});

// The first step at which a measure is further from JAX's than it may be, for each measure; the parameters that are
// not those after JAX's first step, on any device. Nothing where all agree.
Names differences(const Case& expected, const Run& run);

}  // namespace pmaptrain::parity
