// Durations, sizes, measures and patterns: what several sections of a config have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/base/error.h"

namespace pmaptrain::spec {

enum class Unit { steps, epochs, examples, seconds, minutes, hours };
struct Duration {
  std::int64_t count = 0;
  Unit unit = Unit::steps;
  Place place;
};
using Interval = std::optional<Duration>;  // none: never

// How long a process may be silent.
struct Timeout {
  bool automatic = true;
  Interval after;  // unless automatic
};

// An amount of memory.
struct MemorySize {
  std::size_t bytes = 0;
};

// Whether a duration is of time, not of steps.
bool is_time(const Duration& duration);
// Only for a duration in units of time.
double seconds_of(const Duration& duration);

// Whether smaller or larger values of a measure are better.
enum class Mode { min, max };
std::string to_string(Mode mode);
// The default for a measure: max if larger values are better, as for accuracy.
Mode mode_of(const std::string& metric);
// The mode of what selects by a metric: as its section says, else by the metric.
template <class Section>
Mode mode_of(const Section& section) {
  return section.mode.value_or(mode_of(section.metric));
}

// A pattern for names of parameters; each * matches any characters.
struct Pattern {
  std::string text;
  Place place = {};
};

}  // namespace pmaptrain::spec
