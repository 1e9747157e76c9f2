// What a run gives a sweep: its value, or why it has none.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/run/records/events.h"
#include "core/spec/sweep.h"
#include "core/sweep/launcher.h"

namespace pmaptrain::sweep {

struct Result {
  enum class Kind {
    value,    // it ended as planned, or a guard stopped it (then without a value)
    stopped,  // by a signal that the sweep has sent
    died,     // it may be tried again
    failed,   // it would fail again
  };
  Kind kind = Kind::value;
  std::optional<double> value;
  std::int64_t steps = 0;
  double seconds = 0;
  std::string error;
  std::optional<int> exit_status;  // none where a signal ended it
};

// Judges how a run ended. `stopping`: whether the sweep asked its runs to stop.
Result result_of(const Exit& exit, const std::filesystem::path& run, const spec::SweepSpec& sweep, bool stopping);

// The value of a run, or of a member, by its summary: the best evaluation, or the last. None if it is not finite.
std::optional<double> value_of(const run::Ended& ended, const spec::SweepSpec& sweep, std::size_t member = 0);
// The result of a member of an ensemble that has ended.
Result result_of_member(const run::Ended& ended, const spec::SweepSpec& sweep, std::size_t member);

// The split by whose evaluations trials are compared: validation where there is one, else test. Empty without any.
std::string selection_split(const run::Ended& ended);

// summary.json of a run folder; none without one.
std::optional<run::Ended> read_summary(const std::filesystem::path& run);

}  // namespace pmaptrain::sweep
