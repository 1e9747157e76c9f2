// `validate --plans`: the ways in which N devices may divide a model and its batch, compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/report/device_figures.h"
#include "core/spec/load.h"

namespace pmaptrain::report {

struct PlanOptions {
  std::int64_t devices = 1, devices_per_host = 8;
};

// Of one device, by which divisions are ordered: a division of much work or many bytes comes after one of less.
struct AssumedRates {
  double flops_per_second = 0, bytes_within_host = 0, bytes_between_hosts = 0;
};

struct ComparedDivision {
  Division division;
  DeviceFigures figures;
  bool is_planned = false;                    // from the program of the whole model; else estimated
  std::array<double, division_axes> sent{};   // by axis; over several axes at once: by the outermost
  double within_host = 0, between_hosts = 0;  // what a device sends, on average
  double seconds = 0;                         // at the assumed rates, one after another
};

// Divisions that the batch or the layers do not permit.
struct LeftOut {
  std::int64_t count = 0;
  std::string because;  // of the first of them
};

struct Plans {
  PlanOptions options;
  std::optional<std::size_t> memory;  // of one device; none: no limit
  AssumedRates rates;
  std::string name;
  std::int64_t batch = 0, microbatches = 1;
  std::vector<ComparedDivision> divisions;  // in the order in which they are recommended; those that do not fit last
  std::vector<LeftOut> left_out;
  int programs = 0;  // that were made to find this

  bool fits(const ComparedDivision& of) const { return !memory || of.figures.memory() <= static_cast<double>(*memory); }
  std::int64_t fitting() const;
};

// How many of the best divisions are planned as programs; of a deep model fewer, as many as repeat layers so many times
// together. The others are estimated.
inline constexpr std::size_t most_planned = 5;
inline constexpr std::int64_t most_planned_times = 240;

// Throws Error (usage) if no division is possible, and for an ensemble; Error (data) if the data cannot be opened.
Plans make_plans(const spec::Loaded& loaded, const PlanOptions& options);

// The best divisions as a table, and the YAML of the first that fits.
std::string plans_text(const Plans& plans, int width = 0);
// All of them; with its end of line.
std::string plans_json(const Plans& plans);
// The keys that make a config divide so.
std::string plan_yaml(const Division& division);

}  // namespace pmaptrain::report
