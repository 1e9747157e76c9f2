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

// Of memory.
struct MemorySize {
  std::size_t bytes = 0;
};

// Whether a duration is of time, not of steps.
bool is_time(const Duration& duration);
// Of a duration of time.
double seconds_of(const Duration& duration);

// What is better: a smaller or a larger value.
enum class Mode { min, max };
std::string to_string(Mode mode);
// Of a measure whose config does not say it: max for those that are better when larger, as accuracy is.
Mode mode_of(const std::string& metric);
// The mode of what selects by a metric: as its section says, else by the metric.
template <class Section>
Mode mode_of(const Section& section) {
  return section.mode.value_or(mode_of(section.metric));
}

// A name of parameters, in which each * stands for any characters.
struct Pattern {
  std::string text;
  Place place = {};
};

}  // namespace pmaptrain::spec
