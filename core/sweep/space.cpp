#include "core/sweep/space.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <span>
#include <utility>

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

// Of choices, ranges and integers.
std::int64_t count_of(const spec::SweepParameter& parameter) {
  const bool listed = parameter.space == spec::Space::choice || parameter.space == spec::Space::range;
  return listed ? std::ssize(parameter.values) : static_cast<std::int64_t>(parameter.high - parameter.low) + 1;
}

spec::TrialValues combination(const spec::SweepSpec& sweep, std::int64_t number) {
  spec::TrialValues values(sweep.parameters.size());
  for (std::size_t i = values.size(); i-- > 0;) {
    const spec::SweepParameter& parameter = sweep.parameters[i];
    const std::int64_t count = count_of(parameter), index = number % count;
    number /= count;
    const bool listed = parameter.space == spec::Space::choice || parameter.space == spec::Space::range;
    values[i] = listed ? spec::TrialValue{static_cast<std::size_t>(index), 0}
                       : spec::TrialValue{0, parameter.low + static_cast<double>(index)};
  }
  return values;
}

spec::TrialValues drawn(const spec::SweepSpec& sweep, std::int64_t number) {
  spec::TrialValues values(sweep.parameters.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = draw(sweep.parameters[i], uniform(sweep.seed, sweep.parameters[i].name, number));
  }
  return values;
}

// Keeps the combinations that are new.
class Distinct {
 public:
  void add(spec::TrialValues values) {
    std::vector<std::pair<std::size_t, double>> key;
    for (const spec::TrialValue& value : values) key.emplace_back(value.index, value.number);
    if (seen_.insert(std::move(key)).second) trials.push_back(std::move(values));
  }
  std::vector<spec::TrialValues> trials;

 private:
  std::set<std::vector<std::pair<std::size_t, double>>> seen_;
};

}  // namespace

std::optional<std::int64_t> combinations_of(const spec::SweepSpec& sweep) {
  constexpr double most = 1e15;  // no trials would meet
  double count = 1;
  for (const spec::SweepParameter& parameter : sweep.parameters) {
    const bool is_real = parameter.space == spec::Space::uniform || parameter.space == spec::Space::log_uniform;
    if (is_real) return std::nullopt;
    count *= static_cast<double>(count_of(parameter));
    if (count > most) return std::nullopt;
  }
  return static_cast<std::int64_t>(count);
}

std::vector<spec::TrialValues> values_of_trials(const spec::SweepSpec& sweep, Draws draws) {
  const std::optional<std::int64_t> all = combinations_of(sweep);
  if (sweep.search == spec::Search::grid || draws == Draws::with_replacement || !all) {
    std::vector<spec::TrialValues> trials;
    for (std::int64_t i = 0; i < sweep.trials; ++i) {
      trials.push_back(sweep.search == spec::Search::grid ? combination(sweep, i) : drawn(sweep, i));
    }
    return trials;
  }
  Distinct distinct;
  const std::int64_t count = std::min(sweep.trials, *all);
  // The last of many combinations, and rare values of log_int, would take too many draws.
  const std::int64_t most_draws = 1000 + 64 * *all;
  for (std::int64_t i = 0; i < most_draws && std::ssize(distinct.trials) < count; ++i) distinct.add(drawn(sweep, i));
  for (std::int64_t i = 0; std::ssize(distinct.trials) < count; ++i) distinct.add(combination(sweep, i));
  return std::move(distinct.trials);
}

}  // namespace pmaptrain::sweep
