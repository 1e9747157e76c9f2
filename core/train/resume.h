// Finds where a run continues, its newest complete checkpoint, and checks whether a config may continue it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/run/checkpoint.h"
#include "core/run/records/events.h"
#include "core/setup/setup.h"
#include "core/spec/compare.h"
#include "core/spec/load.h"

namespace pmaptrain::train {

struct ResumePoint {
  run::Checkpoint checkpoint;
  std::int64_t newest_step = 0;       // of all existing checkpoints
  std::vector<std::string> warnings;  // about newer checkpoints, which are damaged, and about the best one
};

// The newest complete checkpoint of a run folder. None if there is no folder or no checkpoint. Throws Error (data) if
// there are checkpoints but none is complete. Of several processes, all get that of process 0, which alone has its
// warnings and the newest step. With `spec`, the best is what its train.checkpoint.best makes of the run's.
std::optional<ResumePoint> find_resume_point(const std::filesystem::path& run, const run::FirstProcess& first = {},
                                             const spec::TrainSpec* spec = nullptr);

// Throws Error (resource) if the run folder, which is locked by now, has a newer checkpoint: another process may have
// written it before.
void check_newest(const ResumePoint& point, const std::filesystem::path& run);

// config.yaml of a run folder.
struct RunConfig {
  std::filesystem::path run;  // the folder
  std::string text;
};
// Throws Error (data). Of several processes, all get the file of process 0.
RunConfig read_run_config(const std::filesystem::path& run, const run::FirstProcess& first = {});

// The overrides KEY=VALUE that keep what the run decided where `loaded` leaves it open: each duration under the key
// optimizer.learning_rate that is a default, and data.source.npz.channels: auto.
std::vector<std::string> kept_decisions(const RunConfig& run, const spec::Loaded& loaded);

// The override mesh.blocks=N that keeps the blocks in which the run adds its sums, where `loaded` leaves their number
// to the number of processes; empty if it does not, or has the same.
std::string blocks_override(const RunConfig& run, const spec::Loaded& loaded);

// Checks whether the config `loaded` may continue the run. Keys about devices, durations, intervals and selection by
// evaluations may differ from the run's config, and so may the sizes of axes, and the paths of data of which the run
// knows the content: check_data_continues() compares it. Returns notes for the user. Throws Error (usage), which names
// every other key that differs, with both values.
std::vector<std::string> check_config_continues(const RunConfig& run, const spec::Loaded& loaded,
                                                const input::Contents& contents = {});

// The keys that may differ on resuming, in which the config differs from the run's though no option of this command
// gives their values: what an option gave the run, such as --set, is not in the config that it was begun with.
std::vector<spec::ChangedKey> taken_from_config(const RunConfig& run, const spec::Loaded& loaded);
// A line for each of them, which says how to keep the run's value: in the facts of `setup`, but a warning, which is
// returned, about a duration that is over already.
std::vector<std::string> tell_taken(const std::vector<spec::ChangedKey>& keys, const run::RunState& state,
                                    setup::Setup& setup);

// The setup that continues the run, with the contents of its data; `verify`: all bytes are read. Throws what
// make_setup() throws; but Error (data) where that fails and the data is not what the run began with. `base`: the file
// of the base of adapters, if it was opened before.
setup::Setup make_resumed_setup(spec::Loaded loaded, const run::RunState& state, bool verify = false,
                                std::shared_ptr<setup::InitialFile> base = nullptr);

// Checks what is known only when the data is open: whether examples, encodings and the batch size are those of the run,
// and whether the schedule ends before the run does. Returns notes for the user. Throws Error: data if the data has
// changed; usage if the numbers of examples differ, or if the learning rate is 0 after the end of the schedule.
std::vector<std::string> check_data_continues(const run::RunState& state, const setup::Setup& setup);

// A run that has ended, as summary.json records it, and advice for the user on how to continue it. find_finished()
// returns none if the config with the keys `spec` and the timetable `times` continues the run. Of several processes,
// process 0 reads summary.json.
struct FinishedRun {
  run::Ended ended;
  std::string advice;
};
std::optional<FinishedRun> find_finished(const std::filesystem::path& run, const run::RunState& state,
                                         const spec::TrainSpec& spec, const step::Timetable& times,
                                         std::optional<std::int64_t> max_steps, const run::FirstProcess& first = {});

// Whether a member that is finished takes no more steps when the run is resumed: the config still has the key that
// finished it (MemberState::finished), or the other members have continued without it.
bool stays_finished(const run::MemberState& member, const run::RunState& run, const spec::TrainSpec& spec);
// Whether this is so for all members.
bool stays_finished(const run::RunState& run, const spec::TrainSpec& spec);
// Why members are finished, in words: one text for all members with the same reason. Empty if none is finished.
std::vector<std::string> why_finished(const run::RunState& state);

}  // namespace pmaptrain::train
