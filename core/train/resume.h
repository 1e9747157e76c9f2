// Where a run continues: its newest whole checkpoint, and whether a config may continue it.
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
  std::int64_t newest_step = 0;       // of all checkpoints that there are
  std::vector<std::string> warnings;  // of newer checkpoints, which are damaged
};

// The newest whole checkpoint of a run folder. None where there is no folder or no checkpoint. Throws Error (data)
// where there are checkpoints, but none is whole.
std::optional<ResumePoint> find_resume_point(const std::filesystem::path& run);

// What a config that continues the run must set so that the schedule keeps the length that it began with, as overrides
// "KEY=VALUE": the lengths that are defaults of `loaded` and that differ from the run's config.yaml.
std::vector<std::string> kept_lengths(const std::filesystem::path& run, const spec::Loaded& loaded);

// Whether `loaded` may continue the run: what carries the devices, durations, intervals and what selects on evaluations
// may differ from the run's config.yaml, and so may the sizes of axes. Returns notes for the user. Throws Error (usage)
// which names every other key that differs, with both values.
std::vector<std::string> check_continues(const std::filesystem::path& run, const spec::Loaded& loaded);

// The same of what only the opened data shows: the examples, the batch, and a schedule that ends before the run does.
// Throws Error (usage), also where the rate from there on is 0.
std::vector<std::string> check_continues(const RunState& state, const Setup& setup);

// A run that has ended, and that this config does not continue: as its summary.json says, with what would continue it.
struct FinishedRun {
  Ended ended;
  std::string advice;
};
std::optional<FinishedRun> find_finished(const std::filesystem::path& run, const RunState& state, const Setup& setup,
                                      std::optional<std::int64_t> max_steps);

// Whether the run does not continue what this member was doing: the config still has what finished it
// (MemberState::finished), or the others have gone on without it.
bool stays_finished(const MemberState& member, const RunState& run, const spec::TrainSpec& spec);
// Of all members.
bool stays_finished(const RunState& run, const spec::TrainSpec& spec);
// Why the members are finished, in words: a text for all that have it in common. Empty where none is finished.
std::vector<std::string> why_finished(const RunState& state);

}  // namespace pmaptrain::train
