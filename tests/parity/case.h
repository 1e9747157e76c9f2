// The cases that make_fixtures.py wrote, on any backend: what JAX has, what a run has, and where they differ.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/run/files/safetensors.h"

namespace pmaptrain::parity {

inline const std::filesystem::path folder = "tests/parity";

// How many steps most cases have. Residual networks of many layers have few.
inline constexpr std::int64_t usual_steps = 20, fewest_steps = 5;

using Names = std::vector<std::string>;

struct RunShape {
  std::size_t devices;
  std::string axes;
  int microbatches;
};

Names listed_cases();

// Of cases whose batch_norm computes statistics of parts of a batch: the layouts that make these parts. Of other cases
// of batch_norm: those where it has the statistics of the whole batch, on the devices of one axis that it names, or on
// one. Other cases have none of their own: they are the same on any.
std::vector<RunShape> own_layouts(const std::string& name);

struct Case {
  std::string name;
  std::map<std::string, std::vector<double>> measures;  // by step
  run::Tensors first_step;
  run::Tensors ema;  // after the last step; none for most cases
};

Case read_case(const std::string& name);

struct Run {
  std::map<std::string, std::vector<double>> measures;
  std::vector<std::map<std::string, std::vector<double>>> first_step;  // by device
  std::map<std::string, std::vector<double>> ema;                      // after the last step
};

// The session is of the case's config with these keys set.
Run train_case(const std::string& name, const RunShape& layout, Names set = {});

// How far a loss, a metric or the norm of the gradient may be from JAX's, relative to it: by so much more in each step,
// and no further than `measures`.
struct Nearness {
  double measures = 1e-4, per_step = measures;
};

// The first step at which a measure is further from JAX's than it may be, for each measure; the parameters that are
// not those after JAX's first step, on any device. Nothing where all agree.
Names differences(const Case& expected, const Run& run, const Nearness& nearness = {});

}  // namespace pmaptrain::parity
