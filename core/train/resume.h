// Finds where a run continues, its newest complete checkpoint, and checks whether a config may continue it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/run/checkpoint.h"
#include "core/run/records/events.h"
#include "core/setup/setup.h"
#include "core/spec/load.h"

namespace pmaptrain::train {

struct ResumePoint {
  Checkpoint checkpoint;
  std::int64_t newest_step = 0;       // of all existing checkpoints
  std::vector<std::string> warnings;  // about newer checkpoints, which are damaged
};

// The newest complete checkpoint of a run folder. None if there is no folder or no checkpoint. Throws Error (data) if
// there are checkpoints but none is complete.
std::optional<ResumePoint> find_resume_point(const std::filesystem::path& run);

// The overrides "KEY=VALUE" that a config needs to continue the run with a schedule of the same length: the lengths
// that are defaults in `loaded` and differ from the run's config.yaml.
std::vector<std::string> kept_lengths(const std::filesystem::path& run, const spec::Loaded& loaded);

// Checks whether `loaded` may continue the run. Keys about devices, durations, intervals and selection by evaluations
// may differ from the run's config.yaml, and so may the sizes of axes. Returns notes for the user. Throws Error
// (usage), which names every other key that differs, with both values.
std::vector<std::string> check_continues(const std::filesystem::path& run, const spec::Loaded& loaded);

// The same check for what requires the opened data: the examples, the batch, and a schedule that ends before the run.
// Throws Error (usage), also if the learning rate is 0 from there on.
std::vector<std::string> check_continues(const RunState& state, const Setup& setup);

// A run that has ended and that this config does not continue, as recorded in summary.json, with advice on how to
// continue it. The config has the keys `spec` and the timetable `times`.
struct FinishedRun {
  Ended ended;
  std::string advice;
};
std::optional<FinishedRun> find_finished(const std::filesystem::path& run, const RunState& state,
                                         const spec::TrainSpec& spec, const Timetable& times,
                                         std::optional<std::int64_t> max_steps);

// Whether the member does not train on: the config still has the key that finished it (MemberState::finished), or the
// other members have continued without it.
bool stays_finished(const MemberState& member, const RunState& run, const spec::TrainSpec& spec);
// Whether this holds for all members.
bool stays_finished(const RunState& run, const spec::TrainSpec& spec);
// Why members are finished, in words: one text for all members with the same reason. Empty if none is finished.
std::vector<std::string> why_finished(const RunState& state);

}  // namespace pmaptrain::train
