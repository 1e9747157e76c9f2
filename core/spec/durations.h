// Durations, sizes and measures: what several sections of a config have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/declare/values.h"

namespace pmaptrain::spec {

using declare::Duration;
using declare::Unit;
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

using declare::Mode;
std::string to_string(Mode mode);
// The default for a measure: max if larger values are better, as for accuracy.
Mode mode_of(const std::string& metric);
// The mode of what selects by a metric: as its section says, else by the metric.
template <class Section>
Mode mode_of(const Section& section) {
  return section.mode.value_or(mode_of(section.metric));
}

}  // namespace pmaptrain::spec
