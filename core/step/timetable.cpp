#include "core/step/timetable.h"

#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"

namespace pmaptrain::step {
namespace {

constexpr std::int64_t max_steps = 1'000'000'000'000;

}  // namespace

std::int64_t to_steps(const declare::Duration& duration, const BatchPlan& batch, const std::string& key) {
  const auto refuse = [&](std::string message, std::string help) {
    throw Error(ExitStatus::usage, Diagnostic{"config", duration.place, std::move(message), std::move(help), {}});
  };
  if (duration.count == 0) return 0;  // of a key that may be 0
  double steps = static_cast<double>(duration.count);
  if (duration.unit == declare::Unit::epochs) steps *= static_cast<double>(batch.steps_per_epoch);
  if (duration.unit == declare::Unit::examples) {
    if (duration.count % batch.global != 0) {
      const std::int64_t below = duration.count / batch.global * batch.global;
      refuse(key + ": " + std::to_string(duration.count) + " examples are not whole batches of " +
                 std::to_string(batch.global),
             (below > 0 ? std::to_string(below) + " or " : "") + std::to_string(below + batch.global) +
                 " examples would be");
    }
    steps /= static_cast<double>(batch.global);
  }
  if (steps < 1) refuse(key + " comes to no step", "give at least 1 step");
  if (steps > static_cast<double>(max_steps)) {
    refuse(key + " comes to more than " + with_commas(max_steps) + " steps", "a step counter would not hold them");
  }
  return static_cast<std::int64_t>(steps);
}

}  // namespace pmaptrain::step
