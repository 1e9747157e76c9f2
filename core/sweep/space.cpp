#include "core/sweep/space.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "core/base/philox.h"

namespace pmaptrain::sweep {
namespace {

// Uniform in [0, 1), with 53 bits.
double uniform(std::uint64_t seed, const std::string& parameter, std::int64_t trial) {
  std::array<std::uint32_t, 2> words{};
  philox_row(stream_key(seed, "sweep/" + parameter), static_cast<std::uint64_t>(trial), 0, words);
  const std::uint64_t bits = (std::uint64_t{words[0]} << 32 | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1.0p-53;
}

std::size_t index_of(double u, std::size_t count) {
  return std::min(static_cast<std::size_t>(u * static_cast<double>(count)), count - 1);
}

spec::TrialValue draw(const spec::SweepParameter& parameter, double u) {
  const double low = parameter.low, high = parameter.high;
  switch (parameter.space) {
    case spec::Space::choice:
    case spec::Space::range: return {index_of(u, parameter.values.size()), 0};
    case spec::Space::integer: return {0, std::min(std::floor(low + u * (high - low + 1)), high)};
    case spec::Space::uniform: return {0, low + u * (high - low)};
    case spec::Space::log_uniform:
      return {0, std::clamp(std::exp(std::log(low) + u * (std::log(high) - std::log(low))), low, high)};
    case spec::Space::log_integer: break;
  }
  return {0, std::clamp(std::floor(std::exp(std::log(low) + u * (std::log(high + 1) - std::log(low)))), low, high)};
}

}  // namespace

spec::TrialValues values_of_trial(const spec::SweepSpec& sweep, std::int64_t trial) {
  spec::TrialValues values(sweep.parameters.size());
  if (sweep.search != spec::Search::grid) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = draw(sweep.parameters[i], uniform(sweep.seed, sweep.parameters[i].name, trial));
    }
    return values;
  }
  for (std::size_t i = values.size(); i-- > 0;) {
    const spec::SweepParameter& parameter = sweep.parameters[i];
    const bool listed = parameter.space != spec::Space::integer;
    const std::int64_t count =
        listed ? std::ssize(parameter.values) : static_cast<std::int64_t>(parameter.high - parameter.low) + 1;
    const std::int64_t index = trial % count;
    trial /= count;
    values[i] = listed ? spec::TrialValue{static_cast<std::size_t>(index), 0}
                       : spec::TrialValue{0, parameter.low + static_cast<double>(index)};
  }
  return values;
}

}  // namespace pmaptrain::sweep
